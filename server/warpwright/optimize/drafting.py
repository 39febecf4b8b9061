"""A kernel that a model drafts from words: compiled and run for faults, and where either says something against it
mended, by a rule or by the model that reads what was said."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from warpwright.assist.blocks import read_blocks
from warpwright.assist.engine import Engine
from warpwright.assist.free_form import Task, asking, prompt, unfit, writes_kernels
from warpwright.assist.generate import Draft, assumptions_of, drafts
from warpwright.assist.repair_task import compiler_said
from warpwright.assist.screen import foreign, refusal
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.optimize.compile_errors import certain_repair
from warpwright.optimize.draft_run import fault_in
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.remarks import remarks_of
from warpwright.verify.compiling import STATUS_OF
from warpwright.verify.report import Compilation, CompiledKernel, Level, Report, Status

FILE_NAME = "generated.cu"
ROUNDS = 2
"""Of mending, for each draft."""
_FAILED = (Status.DOES_NOT_COMPILE, Status.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Drafted:
    """The last draft, the name of its kernel and the report on it, None where nothing was compiled. `verdicts` are
    sentences about the drafts and rounds before it, in order."""

    draft: Draft
    name: str = ""
    report: Report | None = None
    verdicts: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        return self.draft.shown and self.report is not None and self.report.status is Status.RAN


def drafted(
    engine: Engine,
    words: str,
    arch: str,
    seconds: float,
    progress: Progress,
    is_cancelled: IsCancelled,
    taken: frozenset[str] = frozenset(),
) -> Drafted:
    """The first draft that compiles and runs without a fault, as written or mended; else the last with its
    reason. Names that are `taken` are refused. Raises EngineError and CancelledError."""
    deadline = time.monotonic() + seconds
    last = Drafted(Draft("", "", False, "The model wrote nothing in time.", ()))
    for draft in drafts(engine, words, is_cancelled, budget_seconds=seconds):
        verdicts = (*last.verdicts, *([last.draft.reason] if last.draft.raw else []))
        is_kernel = bool(draft.code) and not foreign(draft.code)
        reason = _unusable(draft.code, taken) if is_kernel else draft.reason
        if reason:
            last = Drafted(replace(draft, shown=False, reason=reason), verdicts=verdicts)
            continue
        found = _mended(engine, draft, arch, deadline, progress, is_cancelled)
        last = replace(found, verdicts=(*verdicts, *found.verdicts))
        if not last.draft.reason:
            return last
    if is_cancelled():
        raise CancelledError
    return last


def _unusable(code: str, taken: frozenset[str]) -> str:
    """Why a text is no draft, "" where it is one."""
    kernels = analyze(Source(FILE_NAME, encoded(code))).defined_kernels
    if not kernels:
        return "The model wrote no kernel."
    return f"The model wrote {kernels[0].name}, which is there already." if kernels[0].name in taken else ""


def _mended(
    engine: Engine, draft: Draft, arch: str, deadline: float, progress: Progress, is_cancelled: IsCancelled
) -> Drafted:
    """The draft, compiled and after each round of mending again, until nothing is wrong or nothing helps."""
    verdicts: tuple[str, ...] = ()
    while True:
        source = Source(FILE_NAME, encoded(draft.code) + b"\n")
        kernel = analyze(source).defined_kernels[0]
        progress("Compiling the draft", None)
        compiled = compile_cubin(source, arch=arch, is_cancelled=is_cancelled, reads=())
        report = _report(compiled, kernel.name, arch)
        if report.status in _FAILED:
            flaw = f"it does not compile. {report.reason}"
        else:
            flaw = refusal(draft.code)
            if not flaw and report.reached(Level.COMPILED):
                seconds = deadline - time.monotonic()
                flaw = fault_in(source, kernel.name, arch, seconds, progress, is_cancelled)
                report = report if flaw else replace(report, status=Status.RAN, backend="emulator", not_run_because="")
        reason = f"The model's kernel is not shown: {flaw.rstrip('.')}." if flaw else ""
        last = Drafted(replace(draft, shown=not flaw, reason=reason), kernel.name, report, verdicts)
        if not flaw or len(verdicts) == ROUNDS:
            return last
        found = _changed(engine, kernel, compiled, flaw, deadline, progress, is_cancelled)
        if found is None or foreign(found[0]) or f"{kernel.name}(" not in found[0]:
            return last
        draft = replace(draft, code=found[0], assumptions=assumptions_of(found[0]))
        verdicts = (*verdicts, f"Round {len(verdicts) + 1}: {flaw.rstrip('.')}; {found[1]}")


def _changed(
    engine: Engine,
    kernel: Kernel,
    compiled: Compiled,
    flaw: str,
    deadline: float,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> tuple[str, str] | None:
    """The text after one round, and who changed what; a rule comes before the model."""
    repair = certain_repair(kernel, remarks_of(compiled.messages, kernel.source, {}))
    if repair is not None:
        return _edited(kernel, repair.edits), f"the rule {repair.name} mended it: {repair.explanation}"
    if not writes_kernels(engine, "fix") or unfit(kernel):
        return None
    progress(f"{engine.model.name} reads the errors", None)
    task = Task(kernel, "fix", known=compiler_said(compiled.messages) or (flaw,), is_taught=engine.is_taught)
    try:
        proposal = read_blocks(asking(engine, deadline, is_cancelled)(prompt(task), 0), kernel)
    except CancelledError:
        if is_cancelled():
            raise
        return None  # the time is up
    if isinstance(proposal, str):
        return None
    return _edited(kernel, proposal.edits), f"the model changed it: {proposal.why}"


def _edited(kernel: Kernel, edits: tuple[TextEdit, ...]) -> str:
    return kernel.source.edited(list(edits)).text().rstrip("\n")


def _report(compiled: Compiled, kernel: str, arch: str) -> Report:
    """What the compiler says of a draft alone; that it is right nobody can tell, as nothing says what it computes."""
    resources = compiled.instances(kernel)
    taken = CompiledKernel(resources[0], None) if resources else None
    return Report(
        STATUS_OF[compiled.ending],
        (Level.PARSED, Level.COMPILED) if compiled.ok else (Level.PARSED,),
        compiled.reason,
        kernel=kernel,
        compilation=Compilation(compiled.compiler, arch, compiled.flags, None, taken) if compiled.ok else None,
        not_run_because="nothing says what it should compute" if compiled.ok else compiled.ending.value,
        goal="generate",
    )
