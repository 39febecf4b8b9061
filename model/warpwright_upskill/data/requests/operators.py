"""What an operator of a request is: a formula with slots, and the words that people have for it.

Slots of a formula: {X} the element of the input (with what is applied to it before), {Xj} the same at {j} in place of
{c}, {X0} the bare element, {F} all dimensions, {B} those that are kept, {c} the one that is reduced or worked along,
{C} its extent; {lead} and {tail} are the dimensions before and behind that one, as in {x}[{lead}{c} - 1{tail}; zero].
Every other slot is the name of an array or a number, or a feature. Slots of words: {x} the input as a
noun, {axis}, {per}, {dim}, names and features. Words
that begin with ^ are a sentence, which has no "kernel for" before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Shape = Literal["map", "rows", "own"]
"""`map`: any rank, each element by itself; `rows`: along one dimension of any rank; `own`: dimensions of its own."""
Feature = tuple[tuple[str, str], ...]
"""What may be written in a slot of the formula, each with the words for it."""


@dataclass(frozen=True, slots=True)
class Operator:
    """`value` is what the result's element is, `into` its indices, `where` the stages, `more` declarations and further
    results. `inner`: a product, a reduction or the like, whose result an epilogue can take in. `types`: those that it
    is asked for with, apart from f32. `ranks`: numbers of dimensions. `plain`: nothing is applied before or after."""

    name: str
    family: str
    shape: Shape
    value: str
    says: tuple[str, ...]
    into: str = "{F}"
    where: str = ""
    more: str = ""
    features: dict[str, Feature] = field(default_factory=dict)
    types: tuple[str, ...] = ("f16", "bf16", "f64")
    ranks: tuple[int, ...] = (2, 2, 2, 3)
    plain: bool = False
    combine: str = "="
    primed: str = ""
