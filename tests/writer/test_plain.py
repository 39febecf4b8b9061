"""Every formula of the catalogue computes what it says, written plainly and by its schedules: in the emulator, at small
and odd sizes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from formula_catalogue import catalogue
from warpwright.emulator.formula_batch import check_many
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.writer.code import Code
from warpwright.writer.write import plain, written

pytestmark = pytest.mark.sampled(6)

KINDS = sorted({entry.kind for entry in catalogue()})
TOO_LARGE = {"monte_carlo_pi"}
"""Of a size of their own that an emulator takes minutes for."""


@pytest.mark.nvcc
@pytest.mark.parametrize(("write", "shapes"), [(plain, 2), (written, 3)], ids=["plain", "scheduled"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_what_is_written_computes_its_formula(
    kind: str, write: Callable[[Formula, str], Code], shapes: int, every: int
) -> None:
    entries = [entry for entry in catalogue() if entry.kind == kind and entry.name not in TOO_LARGE][::every]
    made = []
    for number, entry in enumerate(entries):
        types = list(entry.texts().values())
        formula = formula_of(types[number % len(types)])
        made.append((entry.name, formula, write(formula, "f_" + re.sub(r"\W", "_", entry.name))))
    wrong = [each for each in check_many(made, shapes) if each.status != "correct"]
    assert not wrong, "\n".join(map(str, wrong))
