"""What words were taken to mean, as a line for the user: a formula in a comment."""

from __future__ import annotations

from warpwright.assist.worded_formula import Reading
from warpwright.formulas.model import Formula


def read_as(reading: Reading, with_sizes: bool = True) -> str:
    """The line that says what words were taken to mean, itself a formula in a comment, with what was assumed. A guess
    of a model's is a draft: its kernel computes this formula, and whether it is what was asked for the user says.

    >>> from warpwright.formulas.resolve import formula_of
    >>> read_as(Reading(formula_of("y[r] = sum[c] x[r, c]")))
    '// read as: y[r] = sum[c] x[r, c]  # f32, row-major, any R and C'
    """
    of_model = f"{reading.votes} answers of the model; " if reading.votes else ""
    head = "draft, read as" if reading.votes else "read as"
    return f"// {head}: {reading.formula.text}  # {of_model}{assumed(reading.formula, with_sizes)}"


def assumed(formula: Formula, with_sizes: bool = True) -> str:
    """Element types, layout and sizes, in words."""
    kinds = {each.array: each.type for each in formula.tensors.values()}
    types = {*kinds.values()}
    said = types.pop() if len(types) == 1 else ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    sizes = f", any {' and '.join(formula.sizes)}" if formula.sizes and with_sizes else ""
    is_flat = all(len(each.extents) < 2 for each in formula.tensors.values())
    return f"{said}{'' if is_flat else ', row-major'}{sizes}"
