"""A formula written and compiled, to be run in the emulator at several sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.emulator.formula_check import Tried, compared
from warpwright.emulator.formulas import Compiled, compiled
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_agreement import reference_of
from warpwright.formulas.numpy_inputs import Style
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.schedules.model import Schedule
from warpwright.writer.code import Code
from warpwright.writer.write import file_text, written


@dataclass(frozen=True)
class Built:
    """A formula, what was written, and its PTX."""

    formula: Formula
    code: Code
    ptx: Compiled

    def run(self, sizes: Mapping[str, int], style: Style = "normal", alignment: int = 256) -> Tried:
        """Runs it and compares every output."""
        expected = reference_of(self.formula)
        found = compared(self.formula, self.code, self.ptx, expected, sizes, 1, style, alignment)
        assert not isinstance(found, Missing), found
        assert found.ok, (sizes, style, found.reason)
        return found


def built(text: str, schedule: Schedule | None = None) -> Built:
    """The formula with a schedule, or with those that its shape suggests."""
    formula = formula_of(text)
    code = written(formula, "tried", schedule)
    ptx = compiled(file_text(code))
    assert not isinstance(ptx, Missing), (ptx, file_text(code))
    return Built(formula, code, ptx)
