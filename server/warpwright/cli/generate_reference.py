"""`warpwright generate --reference`: the kernels of a function of PyTorch, one part after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from warpwright.cli.generate_asked import Beside
from warpwright.cli.report_text import report_text
from warpwright.cli.terminal import COULD_NOT_RUN, CannotRun, say_error, say_note
from warpwright.formulas.lexer import FormulaError
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import unified_diff
from warpwright.verify.formulas import FormulaNotWrittenError
from warpwright.verify.limits import Limit
from warpwright.verify.report import PASSED, Report, Status
from warpwright.verify.torch_export import NotExportedError, plan_of
from warpwright.verify.torch_parts import Part, held_by_parts, written_parts
from warpwright.writer.names import function_name
from warpwright.writer.write import file_text


@dataclass(frozen=True, slots=True)
class Referred:
    """The parts of a function in the order in which they are run."""

    name: str
    parts: tuple[Part, ...]
    limits: tuple[Limit, ...]

    @property
    def reports(self) -> list[Report]:
        """One of each kernel that was written, whatever parts it is launched for."""
        made = {each.written.code.name: each.written.report for each in self.parts}
        return [each for each in made.values() if each is not None]

    @property
    def broken(self) -> str:
        """Why nothing is offered, "" where it is right and keeps to its limits."""
        wrong = [f"{each.kernel}: {each.reason}" for each in self.reports if each.status not in PASSED]
        return "; ".join([*wrong, *(each.text for each in self.limits if not each.holds)])

    @property
    def exit_status(self) -> int:
        if any(each.status is Status.NOT_RUN for each in self.reports):
            return COULD_NOT_RUN
        return 1 if self.broken else 0

    @property
    def text(self) -> str:
        """The file: which function is launched when with what, then all functions."""
        codes = {each.written.code.name: each.written.code for each in self.parts}
        calls = [f"//   {each.call}" for each in self.parts]
        said = f"// {self.name}, in this order, with arrays and sizes as they stand for each other:"
        read_as = f"// read as: {' '.join(self.parts[0].written.formula.text.split())}"
        head = [said, *calls, ""] if len(self.parts) > 1 else [read_as]
        return "\n".join([*head, file_text(*codes.values())])

    def to_json(self) -> dict[str, object]:
        """The answer of `generate --format json`: `parts` has what is run in which order."""
        reports = self.reports
        report = next((each for each in reports if each.status not in PASSED), reports[0] if reports else None)
        candidate = {
            "rewrites": [],
            "code": self.text,
            "diff": unified_diff("", self.text, f"{self.name}.cu"),
            "report": None if report is None else report.to_json(),
            "formula": self.parts[0].text if len(self.parts) == 1 else None,
            "votes": "",
            "limits": [each.to_json() for each in self.limits],
            "parts": [self._part(each) for each in self.parts],
        }
        return {
            "kernel": self.name,
            "goal": "generate",
            "plan": None,
            "candidates": [candidate],
            "best": None if self.broken else 0,
            "assumptions": [promise for each in self.parts for promise in each.written.formula.promises],
            "reference": "\n".join(each.text for each in self.parts),
            "reason": self.broken,
            "raw": "",
        }

    def _part(self, part: Part) -> dict[str, object]:
        report = part.written.report
        return {
            "name": part.name,
            "formula": part.text,
            "function": part.written.code.name,
            "arrays": list(part.arrays),
            "sizes": dict(part.sizes),
            "report": None if report is None else report.to_json(),
        }

    def say(self) -> None:
        """The file alone on stdout, if all of it is right; on stderr what is to be said of it."""
        if all(each.status in PASSED for each in self.reports):
            click.echo(self.text, nl=False)
        for each in self.reports:
            said = f"{each.kernel}: {each.badge()}" if len(self.parts) > 1 else report_text(each.to_json(), whole=False)
            click.echo(said, err=True)
            if len(self.parts) > 1 and each.reason:
                say_error(each.reason)
        for limit in self.limits:
            (say_note if limit.holds else say_error)(limit.text)
        for promise in dict.fromkeys(promise for each in self.parts for promise in each.written.formula.promises):
            say_note(f"The caller sees to it that {promise}")


def of_reference(
    reference: str,
    inputs: tuple[str, ...],
    asked: Beside,
    progress: Progress,
    is_cancelled: IsCancelled,
    seconds: float,
) -> Referred:
    """The kernels of a function of PyTorch, which may take so many seconds to export. Raises CannotRun and
    CancelledError."""
    file, _, name = reference.replace("::", ":").rpartition(":")
    if not file or not name:
        raise CannotRun(f"--reference takes a file and a function in it, as in model.py:step, not {reference!r}")
    if not Path(file).is_file():
        raise CannotRun(f"--reference takes a file and a function in it, as in model.py:step; {file} is not a file.")
    if asked.shapes or asked.limits.sizes:
        raise CannotRun("The sizes of a --reference are those of its inputs: --input f32[64,128], or get_inputs().")
    progress(f"Exporting {name}", None)
    try:
        plan = plan_of(Path(file), name, inputs=inputs, timeout=seconds)
    except NotExportedError as error:
        raise CannotRun(str(error)) from None
    if plan.calls or not plan.formulas:
        said = " ".join(each.said for each in plan.calls)
        raise CannotRun(f"{name} is not made of formulas alone; `warpwright formula --torch` writes its parts. {said}")
    try:
        parts = written_parts(plan, function_name(name), asked.arch, progress, is_cancelled)
    except FormulaNotWrittenError as error:
        raise CannotRun(str(error)) from None
    except FormulaError as error:
        raise CannotRun(f"{name} has no kernel: {error.reason}") from None
    if is_cancelled():
        raise CancelledError
    progress(f"Compiling for {asked.arch}", None)
    sized = [(each.written, each.sizes) for each in parts]
    limits = asked.judged(sized, held_by_parts(plan, parts), is_cancelled, {})
    if is_cancelled():
        raise CancelledError
    return Referred(function_name(name), tuple(parts), limits)
