"""Whether what is written of a formula computes it."""

from __future__ import annotations

from warpwright.emulator.formula_check import shapes_for, tried
from warpwright.emulator.formulas import compiled
from warpwright.formulas.model import Formula
from warpwright.missing import Missing
from warpwright.writer.write import file_text, plain, written


def computes_plainly_and_by_schedules(formula: Formula, name: str) -> None:
    """Asserts it in the emulator, at some sizes from the smallest to the largest."""
    for code in (plain(formula, name), written(formula, name)):
        made = compiled(file_text(code))
        assert not isinstance(made, Missing), made
        shapes = shapes_for(formula, {})
        for found in tried(formula, code, made, shapes[:: max(1, len(shapes) // 3)]):
            assert not isinstance(found, Missing), found
            assert found.ok, found.reason
