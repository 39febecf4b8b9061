"""A formula with arrays of another type."""

from __future__ import annotations

from dataclasses import replace

from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Declaration


def in_type(text: str, kind: str) -> str:
    """The formula with arrays of `kind` where it has some of f32.

    >>> print(in_type("y: f32[R]\\ny[r] = sum[c] x[r, c] * w[c]", "bf16"))
    x: bf16
    w: bf16
    y: bf16[R]
    y[r] = sum[c] x[r, c] * w[c]
    """
    written, formula = parse(text), formula_of(text)
    declared = {each.name for each in written.declarations}
    new = [
        Declaration(each.name, kind)
        for each in formula.inputs
        if each.type == "f32" and each.array not in declared and kind != "f32"
    ]
    old = [replace(each, type=kind) if each.type == "f32" else each for each in written.declarations]
    return printed(replace(written, declarations=(*new, *old)))
