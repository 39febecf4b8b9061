"""Sizes that a candidate's kernel is handed behind the parameters of the original's.

Example: `scale<<<n, 1>>>(data)` became `scale<<<(n + 63) / 64, 64>>>(data, n)`. The original's side of the comparison
then launches its kernel with its own arguments, on the arrays that both have.
"""

from __future__ import annotations

from dataclasses import replace

from warpwright.problems.expressions import names, parse
from warpwright.problems.model import Problem, Scalar, Step


def with_added_sizes(original: Problem, candidate: Problem) -> Problem:
    """The original's problem with the whole numbers that the candidate takes behind its parameters, made of symbols
    that both have; as it is where there are none, or the candidate takes anything else."""
    own = original.arguments
    same, added = candidate.arguments[: len(own)], candidate.arguments[len(own) :]
    if not added or [a.name for a in same] != [a.name for a in own]:
        return original
    if original.steps or candidate.steps or original.reference is not None:
        return original
    if not all(isinstance(each, Scalar) and _is_size(each, original) for each in added):
        return original
    step = Step(original.kernel, original.instance, tuple(a.name for a in own))
    return replace(original, arguments=(*own, *added), steps=(step,))


def _is_size(scalar: Scalar, original: Problem) -> bool:
    return scalar.type.removeprefix("u").startswith("int") and names(parse(scalar.value)) <= set(original.symbols)
