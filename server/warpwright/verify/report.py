"""What verification found out about a candidate: as JSON for machines, as a badge for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from warpwright.facts.occupancy import Occupancy
from warpwright.facts.resources import KernelResources
from warpwright.rules.base import Finding

EMULATOR = "emulator"
"""The backend that runs kernels on the CPU: it compares, and times nothing."""
RECORDER = "recorder"
"""The backend that runs host code on the CPU and writes down what it launches; it times nothing."""
SAME_CODE = "same device code"
"""The backend of a fix of host code that changes how errors are looked at and nothing else: the compiler's PTX is the
same, so nothing is run."""
USUAL = "any values"
"""What the arrays of a recorded run hold: nothing looks into them."""
UNTIMED = (EMULATOR, RECORDER)

ORIGINAL_REJECTED = "the original does not compile"
"""Why a candidate is not run where nvcc rejects the user's own text: there is nothing to compare with."""


class Status(StrEnum):
    """The last word on a candidate.

    not-run: it was not run, for the `reason` given; what was found out before that stands in the report's other parts.
    cured: of a fix: the original does wrong in every run, so that there is nothing to compare with, and it in none.
    ran: of a kernel of which nothing says what it should compute: it was run and did nothing wrong.
    """

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    CORRECT = "correct"
    CURED = "cured"
    RAN = "ran"
    WRONG = "wrong"
    UNSAFE = "unsafe"
    DOES_NOT_COMPILE = "does-not-compile"
    TIMEOUT = "timeout"
    NOT_RUN = "not-run"


PASSED = (Status.CORRECT, Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE)
"""Both were run, and the candidate gives what the original does."""


class Level(StrEnum):
    """The rungs of the ladder, lowest first."""

    PARSED = "parsed"
    COMPILED = "compiled"
    ANALYSED = "re-analysed"
    CORRECT = "correct"
    FASTER = "faster"


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """What one kernel takes, and how many of its blocks fit on a multiprocessor (None where the block is not known)."""

    resources: KernelResources
    occupancy: Occupancy | None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self.resources), "occupancy": asdict(self.occupancy) if self.occupancy else None}


@dataclass(frozen=True, slots=True)
class Compilation:
    """How both sides compiled: what the kernel takes on each side, None where a side does not have it. `flags_from`
    says where the flags were read, "" where nothing but the command line gave any."""

    compiler: str
    arch: str
    flags: tuple[str, ...]
    original: CompiledKernel | None
    candidate: CompiledKernel | None
    flags_from: str = ""

    def to_json(self) -> dict[str, Any]:
        """The candidate's figures, with the original's beside them."""
        return {
            "compiler": self.compiler,
            "arch": self.arch,
            "flags": list(self.flags),
            "flags_from": self.flags_from,
            **(self.candidate.to_json() if self.candidate else {}),
            "original": self.original.to_json() if self.original else None,
        }


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One comparison. `shape` gives the symbols their sizes; differences are None where nothing could be compared.
    `details` holds what else was measured there, such as the tolerance and the difference in units in the last place.
    """

    shape: Mapping[str, int]
    distribution: str
    ok: bool
    max_abs: float | None
    max_rel: float | None
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=lambda: {})

    def to_json(self) -> dict[str, Any]:
        return {
            "shape": dict(self.shape),
            "distribution": self.distribution,
            "ok": self.ok,
            "max_abs": self.max_abs,
            "max_rel": self.max_rel,
            "reason": self.reason,
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class Speed:
    """One timed shape, cold caches; `details` holds what else the harness measured there, such as warm caches."""

    shape: Mapping[str, int]
    baseline_us: float
    candidate_us: float
    speedup: float
    ci95: tuple[float, float]
    details: Mapping[str, Any] = field(default_factory=lambda: {})

    def to_json(self) -> dict[str, Any]:
        return {
            "shape": dict(self.shape),
            "baseline_us": self.baseline_us,
            "candidate_us": self.candidate_us,
            "speedup": self.speedup,
            "ci95": list(self.ci95),
            **self.details,
        }


class What(StrEnum):
    """What a verdict does not cover."""

    LAUNCH = "launch"
    SIZE = "size"
    INPUT = "input"
    OUTPUT = "output"
    HOST_CODE = "host-code"


@dataclass(frozen=True, slots=True)
class Uncovered:
    """One thing that matters to the program and that the verdict does not cover. `text` is one sentence without its
    full stop; `file` and `line` are its place, where it has one.

    Example: a launch that could not be reconstructed, a size that was too large to run, an output nothing compares.
    """

    what: What
    text: str
    file: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"what": str(self.what), "text": self.text, "file": self.file, "line": self.line}


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many times as fast the candidate should be at the user's own launch on `gpu`, by the model of `cost`."""

    speedup: float
    gpu: str


class ProgramStatus(StrEnum):
    """What the program's own test said of a candidate."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class ProgramSide:
    """How the program of one side ended, and how long each of its runs and its build took."""

    exit_status: int
    seconds: tuple[float, ...]
    build_seconds: float

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": list(self.seconds)}


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """What the program's own test said: `build` and `run` are its commands, `compared` says what of both was compared.

    `reason` is one sentence where it was not run or where both differ; a side is None where it did not come so far.
    """

    status: ProgramStatus
    reason: str
    build: str
    run: str
    original: ProgramSide | None = None
    candidate: ProgramSide | None = None
    compared: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "status": str(self.status),
            "reason": self.reason,
            "build": self.build,
            "run": self.run,
            "compared": self.compared,
            "original": self.original.to_json() if self.original else None,
            "candidate": self.candidate.to_json() if self.candidate else None,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `verify`. `levels` are the rungs that the candidate reached, in order.

    `backend` is "cuda:" and the GPU's name, "emulator", "recorder", "same device code", or "none". `finding_gone` is
    None where no finding was to go. `new_findings` are the warnings and errors that the candidate has and the original
    has not. `goal` is what it is for: "speed", "memory", "fix" or "reference" (see `verify`).
    """

    status: Status
    levels: tuple[Level, ...] = ()
    reason: str = ""
    backend: str = "none"
    kernel: str = ""
    compilation: Compilation | None = None
    finding_gone: bool | None = None
    new_findings: tuple[Finding, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    speed: tuple[Speed, ...] = ()
    notes: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=lambda: {})
    not_run_because: str = ""
    goal: str = "speed"
    predicted: Prediction | None = None
    uncovered: tuple[Uncovered, ...] = ()
    program: ProgramOutcome | None = None
    launches: tuple[str, ...] = ()
    """The launches that were run, each by its place in the host code, such as "solver.cu:41"."""

    def reached(self, level: Level) -> bool:
        return level in self.levels

    def to_json(self) -> dict[str, Any]:
        return {
            "status": str(self.status),
            "badge": self.badge(),
            "coverage": self.coverage(),
            "backend": self.backend,
            "levels": [str(level) for level in self.levels],
            "kernel": self.kernel,
            "goal": self.goal,
            "compile": self.compilation.to_json() if self.compilation else None,
            "finding_gone": self.finding_gone,
            "new_findings": [_finding_json(finding) for finding in self.new_findings],
            "cases": [case.to_json() for case in self.cases],
            "speed": [speed.to_json() for speed in self.speed],
            "predicted_speedup": self.predicted.speedup if self.predicted else None,
            "predicted_for": self.predicted.gpu if self.predicted else None,
            "reason": self.reason,
            "launches": list(self.launches),
            "uncovered": [each.to_json() for each in self.uncovered],
            "program": self.program.to_json() if self.program else None,
            "notes": list(self.notes),
            "environment": dict(self.environment),
        }

    def badge(self) -> str:
        """What was proved, in a few words, and never more than that.

        >>> Report(Status.NOT_RUN, (Level.PARSED, Level.COMPILED), not_run_because="no GPU here").badge()
        'compiled, not run: no GPU here'
        >>> Report(Status.CORRECT, backend="emulator").badge()
        'correct (emulator), not timed'
        >>> Report(Status.CORRECT, backend="emulator", predicted=Prediction(1.84, "H200")).badge()
        'correct (emulator), predicted 1.8x (H200), not timed'
        >>> Report(Status.CORRECT, backend="same device code").badge()
        'correct (same device code)'
        >>> Report(Status.CURED, backend="emulator").badge()
        'cured (emulator), results not compared'
        >>> Report(Status.RAN, backend="emulator").badge()
        'ran without a fault (emulator), results not compared'
        >>> Report(Status.CORRECT, backend="recorder").badge()
        'correct (recorder), not timed'
        >>> speed = Speed({"n": 4096}, 190.0, 100.0, 1.9, (1.86, 1.93))
        >>> levels = (Level.COMPILED, Level.CORRECT, Level.FASTER)
        >>> Report(Status.FASTER, levels, backend="cuda:NVIDIA H200", speed=(speed,)).badge()
        'faster 1.9x (NVIDIA H200, 95% CI 1.86-1.93)'
        """
        if self.status is Status.NOT_RUN:
            proved = Level.COMPILED if self.reached(Level.COMPILED) else None
            start = str(proved) if proved else ("parsed, not compiled" if self.reached(Level.PARSED) else "not parsed")
            return f"{start}, not run: {self.not_run_because}" if self.not_run_because else f"{start}, not run"
        if self.speed and self.status in (Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE):
            first = self.speed[0]
            interval = f"({self._gpu()}, 95% CI {first.ci95[0]:.2f}-{first.ci95[1]:.2f})"
            if self.status is Status.FASTER:
                return f"faster {_ratio(first.speedup)}x {interval}"
            word = "slower" if self.status is Status.SLOWER else "correct, no faster"
            return f"{word} {_ratio(first.speedup)}x {interval}"
        if self.status is Status.CORRECT and self.speed:
            return f"correct ({self._gpu()}), {_ratio(self.speed[0].speedup)}x where it was run"
        if self.status is Status.CORRECT:
            predicted = f", predicted {self.predicted.speedup:.1f}x ({self.predicted.gpu})" if self.predicted else ""
            return f"correct ({self._gpu()})" + (f"{predicted}, not timed" if self.backend in UNTIMED else "")
        if self.status in (Status.CURED, Status.RAN):
            what = "cured" if self.status is Status.CURED else "ran without a fault"
            return f"{what} ({self._gpu()}), results not compared"
        return str(self.status).replace("-", " ")

    def with_program(self, outcome: ProgramOutcome) -> Report:
        """The same report with what the program's own test said. A candidate that changes that is wrong."""
        if outcome.status is not ProgramStatus.DIFFERS:
            return replace(self, program=outcome)
        levels = tuple(level for level in self.levels if level not in (Level.CORRECT, Level.FASTER))
        return replace(self, status=Status.WRONG, levels=levels, reason=outcome.reason, program=outcome)

    def as_covered(self) -> Report:
        """The same report, which calls nothing faster of which a launch, size, input or output was not compared."""
        if self.status is not Status.FASTER or not self.uncovered:
            return self
        levels = tuple(level for level in self.levels if level is not Level.FASTER)
        reason = f"It is faster where it was run, and {self.coverage()}."
        return replace(self, status=Status.CORRECT, levels=levels, reason=reason)

    def coverage(self) -> str:
        """What of the program the verdict holds for, in one line; "" where it is right and nothing is left to say.

        >>> launch = Uncovered(What.LAUNCH, "its block cannot be followed", "a.cu", 9)
        >>> size = Uncovered(What.SIZE, "n = 4194304 was not run")
        >>> Report(Status.CORRECT, launches=("a.cu:4", "a.cu:7"), uncovered=(launch, size)).coverage()
        'correct for 2 of 3 launches; not covered: 1 launch, 1 size'
        >>> Report(Status.CORRECT, launches=("a.cu:4",)).coverage()
        ''
        """
        if self.status not in PASSED or not self.uncovered:
            return ""
        counted = {what: sum(each.what is what for each in self.uncovered) for what in What}
        missed = [
            f"{number} {str(what).replace('-', ' ')}{'' if number == 1 or what is What.HOST_CODE else _plural(what)}"
            for what, number in counted.items()
            if number
        ]
        lost, ran = counted[What.LAUNCH], len(self.launches)
        held = f"correct for {ran} of {ran + lost} launches; " if lost and ran else ""
        return f"{held}not covered: {', '.join(missed)}"

    def _gpu(self) -> str:
        return self.backend.removeprefix("cuda:")


def _plural(what: What) -> str:
    return "es" if what is What.LAUNCH else "s"


def _finding_json(finding: Finding) -> dict[str, Any]:
    span = finding.span
    return {
        "rule": finding.rule,
        "file": span.path,
        "line": span.line,
        "column": span.column,
        "message": finding.message,
    }


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 1.2 else f"{value:.2f}"
