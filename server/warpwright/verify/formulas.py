"""A formula as CUDA, with a report on whether the kernels compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from warpwright.formulas.model import Formula
from warpwright.formulas.shapes import Shape, operations
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.schedules.model import Schedule
from warpwright.schedules.text import read_schedule
from warpwright.verify.harness import Gpu, find_gpu
from warpwright.verify.report import CaseResult, Level, Report, Status, Uncovered, What
from warpwright.verify.schedule_search import RULES, Found, searched
from warpwright.writer.code import Code
from warpwright.writer.coverage import first, instances, only
from warpwright.writer.explain import explained
from warpwright.writer.scatter import ScatterError
from warpwright.writer.write import ScheduleError, file_text, plain, written

if TYPE_CHECKING:
    from warpwright.emulator.formulas import Compiled

SEARCH_SECONDS = 20.0
"""For schedules of a kernel that is asked for in words."""
MOST_ROUGH = 100_000
"""Operations beyond which kernels that are hardly optimised take longer in the emulator than nvcc saves."""

LEAST_LEFT_OUT = 3
"""Instances of kernels that no path at the sizes launches, for which a second run of nvcc beside is worth while."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be written: the name of the function, for which architecture, at which `sizes` it is tried besides,
    whether plainly (a thread for each element), with which schedule where not that of the rules, for how many seconds
    at most schedules are timed where they are searched for, and whether it is checked."""

    name: str
    arch: str = "sm_90"
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_plain: bool = False
    schedule: Schedule | None = None
    search_seconds: float | None = None
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and the report on it where it was checked."""

    formula: Formula
    code: Code
    text: str
    explanation: str
    report: Report | None
    search: Found | None = None

    def to_json(self) -> dict[str, Any]:
        """The form of `formula --format json`."""
        return {
            "formula": self.formula.text,
            "name": self.code.name,
            "code": self.text,
            "explanation": self.explanation,
            "promises": list(self.formula.promises),
            "report": None if self.report is None else self.report.to_json(),
            "search": None if self.search is None else self.search.to_json(),
        }


class FormulaNotWrittenError(Exception):
    """A formula for which no kernel can be written: one sentence."""


def written_and_checked(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Written:
    """The kernels of a formula, and whether they compute it. Raises FormulaNotWrittenError."""
    progress("Writing the kernels", None)
    found = None
    schedule = asked.schedule
    try:
        if asked.search_seconds is not None:
            found = _searched(formula, asked, progress, is_cancelled)
            best = found.candidates[0].schedule
            schedule = None if best == RULES else read_schedule(best)
        if asked.is_plain:
            code = plain(formula, asked.name)
        else:
            code = written(formula, asked.name, schedule, asked.sizes if found is not None else None)
    except ScatterError as error:
        raise FormulaNotWrittenError(str(error)) from None
    except ScheduleError as error:
        raise FormulaNotWrittenError(f"That schedule does not fit the formula. {error}") from None
    text = file_text(code)
    report = checked(formula, code, text, asked, progress, is_cancelled) if asked.is_checked else None
    return Written(formula, code, text, explained(code), report, found)


def written_best(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Written:
    """As `written_and_checked`, by the schedule that is fastest at the sizes that are asked for, where all of them are
    and a GPU is there to time some. Raises FormulaNotWrittenError."""
    if formula.sizes and {*formula.sizes} <= {*asked.sizes} and isinstance(find_gpu(is_cancelled), Gpu):
        with suppress(FormulaNotWrittenError):  # where none can be timed, the rules say
            timed = replace(asked, search_seconds=SEARCH_SECONDS)
            return written_and_checked(formula, timed, progress, is_cancelled)
    return written_and_checked(formula, asked, progress, is_cancelled)


def said_of_search(found: Found | None) -> str:
    """What was timed for a schedule, as a sentence; "" where nothing was.

    >>> from warpwright.verify.schedule_search import Candidate
    >>> said_of_search(Found({"R": 64}, (Candidate("rules", 3.0, 2.0), Candidate("rows:lanes=8", 4.0)), "H200"))
    'Schedule rules: 2.0 us at R = 64 on H200, the fastest of 1 that were timed.'
    """
    if found is None or not found.gpu or found.candidates[0].measured_us is None:
        return ""
    best, timed = found.candidates[0], sum(each.measured_us is not None for each in found.candidates)
    sizes = ", ".join(f"{name} = {size}" for name, size in found.sizes.items())
    us = f"{best.measured_us:.1f} us at {sizes} on {found.gpu}"
    return f"Schedule {best.schedule}: {us}, the fastest of {timed} that were timed."


def _searched(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Found:
    missing = [each for each in formula.sizes if each not in asked.sizes]
    if missing:
        raise FormulaNotWrittenError(f"A schedule is searched for at given sizes: say --size {missing[0]}=1024.")
    gpu = find_gpu(is_cancelled)
    on = gpu if isinstance(gpu, Gpu) else None
    arch = asked.arch if on is None else on.arch
    found = searched(formula, asked.sizes, arch, on, asked.search_seconds or 0.0, progress, is_cancelled)
    if isinstance(found, Missing):
        raise FormulaNotWrittenError(found.reason)
    return found


def checked(
    formula: Formula, code: Code, text: str, asked: Asked, progress: Progress, is_cancelled: IsCancelled
) -> Report:
    """Compiles the text and compares what it computes in the emulator, and where one is on the GPU, with the formula's
    evaluation in double precision."""
    if find_spec("numpy") is None:
        return _report(code, Status.NOT_RUN, (Level.PARSED,), not_run_because="NumPy is not installed")
    from warpwright.emulator.formula_check import shapes_for
    from warpwright.emulator.formulas import compiled

    progress("Compiling the kernels", None)
    made = compiled(text, asked.arch, is_cancelled)
    return compared_at(formula, code, made, shapes_for(formula, asked.sizes), asked, progress, is_cancelled)


def checked_first(
    formula: Formula, code: Code, text: str, asked: Asked, progress: Progress, is_cancelled: IsCancelled
) -> Report:
    """As `checked`, sooner: compared at some sizes for each path that is taken, from what these paths launch alone, and
    where little is computed there compiled with little optimisation; the whole is compiled beside, not optimised. The
    report says at which sizes; the others are left for `checked`."""
    if find_spec("numpy") is None:
        return _report(code, Status.NOT_RUN, (Level.PARSED,), not_run_because="NumPy is not installed")
    from warpwright.emulator.formula_check import shapes_for
    from warpwright.emulator.formulas import compiled, compiled_roughly, refused

    progress("Compiling the kernels", None)
    shapes = shapes_for(formula, asked.sizes)
    some = first(code, formula, shapes)
    is_short = sum(operations(formula, each.sizes) for each in some) < MOST_ROUGH
    taken = only(code, formula, some)
    is_cut = len(instances(code)) - len(instances(taken)) >= LEAST_LEFT_OUT
    launched = file_text(taken) if is_cut else text
    with ThreadPoolExecutor(1) as beside:
        whole = beside.submit(refused, text, asked.arch, is_cancelled) if is_cut else None
        made = compiled_roughly(launched, is_cancelled) if is_short else compiled(launched, asked.arch, is_cancelled)
        wrong = whole.result() if whole is not None else None
    report = compared_at(formula, code, wrong or made, some, asked, progress, is_cancelled)
    if report.status is not Status.CORRECT or len(some) == len(shapes):
        return report
    ran = ", ".join(each.name for each in some)
    left = f"compared at {len(some)} of {len(shapes)} sizes ({ran}), which cover every code path of the others"
    return replace(report, uncovered=(*report.uncovered, Uncovered(What.SIZE, left)))


def compared_at(
    formula: Formula,
    code: Code,
    made: Compiled | Missing,
    shapes: Sequence[Shape],
    asked: Asked,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Report:
    """The report on what was compiled, run in the emulator at some shapes."""
    from warpwright.emulator.formula_check import TOO_LONG, tried
    from warpwright.emulator.formulas import REJECTED

    if isinstance(made, Missing):
        is_rejected = made.what == REJECTED
        status = Status.DOES_NOT_COMPILE if is_rejected else Status.NOT_RUN
        return _report(code, status, (Level.PARSED,), made.reason, not_run_because="" if is_rejected else made.reason)
    levels: tuple[Level, ...] = (Level.PARSED, Level.COMPILED)
    cases: list[CaseResult] = []
    uncovered: list[Uncovered] = []
    for found in tried(formula, code, made, shapes, is_cancelled):
        if isinstance(found, Missing) and found.what == TOO_LONG:
            uncovered.append(Uncovered(What.SIZE, found.reason))
            continue
        if isinstance(found, Missing):
            return _report(code, Status.NOT_RUN, levels, found.reason, cases, not_run_because=found.reason)
        progress("Comparing with the formula", len(cases) / (len(shapes) + 3))
        cases.append(
            CaseResult(dict(found.sizes), found.style, found.ok, None, None, found.reason, {"unjudged": found.unjudged})
        )
    wrong = next((each for each in cases if not each.ok), None)
    if wrong is not None:
        return _report(code, Status.WRONG, levels, f"At {_said(wrong.shape)}: {wrong.reason}", cases)
    wanted = {name: number for name, number in asked.sizes.items() if name in formula.sizes}
    ran = cases[0].shape if cases else {}
    if wanted and any(ran.get(name) != number for name, number in wanted.items()):
        text = f"{_said(wanted)} was not run whole: the emulator takes on {_said(ran)}"
        uncovered.append(Uncovered(What.SIZE, text))
    if not cases:
        reason = uncovered[0].text if uncovered else "the emulator takes on none of its sizes"
        return _report(code, Status.NOT_RUN, levels, reason, not_run_because=reason)
    return _report(code, Status.CORRECT, (*levels, Level.CORRECT), "", cases, uncovered=tuple(uncovered))


def _said(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {number}" for name, number in sizes.items())


def _report(
    code: Code,
    status: Status,
    levels: tuple[Level, ...],
    reason: str = "",
    cases: list[CaseResult] | None = None,
    not_run_because: str = "",
    uncovered: tuple[Uncovered, ...] = (),
) -> Report:
    backend = "emulator" if status in (Status.CORRECT, Status.WRONG) else "none"
    return Report(
        status,
        levels,
        reason,
        backend,
        code.name,
        cases=tuple(cases or ()),
        environment={"judge": "formula"},
        not_run_because=not_run_because,
        goal="formula",
        uncovered=uncovered,
    )
