"""A formula as CUDA, with a report on whether the kernels compute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from warpwright.formulas.model import Formula
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.verify.report import CaseResult, Level, Report, Status
from warpwright.writer.code import Code
from warpwright.writer.explain import explained
from warpwright.writer.scatter import ScatterError
from warpwright.writer.write import file_text, plain, written


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be written: the name of the function, for which architecture, at which `sizes` it is tried besides,
    whether plainly (a thread for each element), and whether it is checked."""

    name: str
    arch: str = "sm_90"
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_plain: bool = False
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and the report on it where it was checked."""

    formula: Formula
    code: Code
    text: str
    explanation: str
    report: Report | None

    def to_json(self) -> dict[str, Any]:
        """The form of `formula --format json`."""
        return {
            "formula": self.formula.text,
            "name": self.code.name,
            "code": self.text,
            "explanation": self.explanation,
            "promises": list(self.formula.promises),
            "report": None if self.report is None else self.report.to_json(),
        }


class FormulaNotWrittenError(Exception):
    """A formula for which no kernel can be written: one sentence."""


def written_and_checked(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Written:
    """The kernels of a formula, and whether they compute it. Raises FormulaNotWrittenError."""
    progress("Writing the kernels", None)
    try:
        code = (plain if asked.is_plain else written)(formula, asked.name)
    except ScatterError as error:
        raise FormulaNotWrittenError(str(error)) from None
    text = file_text(code)
    report = checked(formula, code, text, asked, progress, is_cancelled) if asked.is_checked else None
    return Written(formula, code, text, explained(code), report)


def checked(
    formula: Formula, code: Code, text: str, asked: Asked, progress: Progress, is_cancelled: IsCancelled
) -> Report:
    """Compiles the text and compares what it computes in the emulator with the formula's evaluation in double
    precision."""
    if find_spec("numpy") is None:
        return _report(code, Status.NOT_RUN, (Level.PARSED,), not_run_because="NumPy is not installed")
    from warpwright.emulator.formula_check import shapes_for, tried
    from warpwright.emulator.formulas import compiled

    progress("Compiling the kernels", None)
    made = compiled(text, asked.arch)
    if isinstance(made, Missing):
        is_rejected = made.what == "PTX"
        status = Status.DOES_NOT_COMPILE if is_rejected else Status.NOT_RUN
        return _report(code, status, (Level.PARSED,), made.reason, not_run_because="" if is_rejected else made.reason)
    levels: tuple[Level, ...] = (Level.PARSED, Level.COMPILED)
    shapes = shapes_for(formula, asked.sizes)
    cases: list[CaseResult] = []
    for found in tried(formula, code, made, shapes, is_cancelled):
        if isinstance(found, Missing):
            return _report(code, Status.NOT_RUN, levels, found.reason, cases, not_run_because=found.reason)
        progress("Comparing with the formula", len(cases) / (len(shapes) + 3))
        cases.append(
            CaseResult(dict(found.sizes), found.style, found.ok, None, None, found.reason, {"unjudged": found.unjudged})
        )
    wrong = next((each for each in cases if not each.ok), None)
    if wrong is not None:
        sizes = ", ".join(f"{name} = {number}" for name, number in wrong.shape.items())
        return _report(code, Status.WRONG, levels, f"At {sizes}: {wrong.reason}", cases)
    return _report(code, Status.CORRECT, (*levels, Level.CORRECT), "", cases)


def _report(
    code: Code,
    status: Status,
    levels: tuple[Level, ...],
    reason: str = "",
    cases: list[CaseResult] | None = None,
    not_run_because: str = "",
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
    )
