"""From what the emulator counted on both sides to how much faster the candidate should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwright.facts.machines import machine_of
from warpwright.facts.occupancy import occupancy
from warpwright.facts.work import Work
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.model import Case, Problem
from warpwright.problems.shapes import Shape
from warpwright.verify.cost import Launched, microseconds
from warpwright.verify.report import Compilation, CompiledKernel, Prediction

_FAR_MORE = 4
"""Times the bytes: below, what every block does once and what it does for each element weigh about alike."""


def predicted(
    work: Mapping[str, Mapping[str, Any]],
    problems: tuple[Problem, Problem],
    compilation: Compilation | None,
) -> Prediction | None:
    """The prediction for the user's own launch, or, where its size is not known, for the largest shape that is timed.

    None where one of the sides was not counted or cannot be launched there, or where its blocks are as many as at the
    sizes that were counted and do more: what they do then was not counted.
    """
    if not work or compilation is None or compilation.original is None or compilation.candidate is None:
        return None
    original, candidate = problems
    shape = original.own_shape or max(original.time, key=original.bytes, default=None)
    if shape is None:
        return None
    machine = machine_of(compilation.arch)
    times = []
    sides = (("original", original, compilation.original), ("candidate", candidate, compilation.candidate))
    for name, problem, compiled in sides:
        try:
            case = problem.case(shape)
            if original.own_shape is None and _does_more(problem, original, shape):
                return None
        except ExpressionError:
            return None
        launched = _launched(Work(**work[name]), case, original.bytes(shape), compiled, compilation.arch)
        times.append(microseconds(launched, machine))
    return Prediction(times[0] / times[1], machine.name)


def _does_more(problem: Problem, original: Problem, shape: Shape) -> bool:
    """Whether a grid of one size walks over far more than it did where its work was counted. Raises ExpressionError."""
    counted = max(original.check, key=original.bytes)
    return problem.case(counted).grid == problem.case(shape).grid and original.bytes(
        shape
    ) > _FAR_MORE * original.bytes(counted)


def _launched(work: Work, case: Case, array_bytes: int, compiled: CompiledKernel, arch: str) -> Launched:
    threads = case.block[0] * case.block[1] * case.block[2]
    taken = compiled.resources
    shared = taken.shared_bytes + case.dynamic_shared_bytes
    fits = occupancy(arch, taken.registers, shared, threads, taken.barriers)
    blocks = case.grid[0] * case.grid[1] * case.grid[2]
    return Launched(work, blocks, fits.blocks, shared, array_bytes)
