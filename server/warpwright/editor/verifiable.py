"""Why a run of an edited kernel would prove nothing here, as far as that can be seen before it is run."""

from __future__ import annotations

from math import prod
from pathlib import Path

from warpwright.cuda.project import files_that_launch
from warpwright.facts.model import AccessKind, Basis, Kernel, Program, Space
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape
from warpwright.toolchain.driver import has_driver

_FEWEST_STEPS = 4
"""Of a thread that does nothing but test its number."""
_ACCESS_STEPS = 6
"""Of an access with what its address takes, or less."""


def not_run(program: Program, kernel: Kernel) -> str:
    """Why a kernel's edit could not be compared with it by a run; "" where it can be tried."""
    problem = find_problem(program, kernel)
    if isinstance(problem, Missing):
        return problem.reason
    if problem.arrays and not problem.results and all(array.role == "in" for array in problem.arrays):
        return f"{kernel.name} writes to no array, so there is nothing to compare."
    shapes = (*problem.check, problem.own_shape)
    if not has_driver() and not any(_is_small(problem, shape, kernel) for shape in shapes):
        return f"{kernel.name} is too large to emulate at every size, and there is no GPU here."
    if array := _scattered(kernel):
        return f"Data decide which elements of {array} a thread writes, and others read it, so two runs may differ."
    return _guessed_block(kernel)


def _is_small(problem: Problem, shape: Shape | None, kernel: Kernel) -> bool:
    """Whether the emulator may run all threads of a shape."""
    from warpwright.verify.budget import BUDGET, MOST_BYTES  # `check` of a file without a fix loads nothing of verify

    if shape is None:
        return False
    try:
        case = problem.case(shape)
    except ExpressionError:
        return False
    steps = _FEWEST_STEPS * prod((*case.grid, *case.block))
    if not shape:  # the one size that there is, which is the one that the accesses were counted at
        of_first = (each for each in kernel.accesses if each.launch == 0)
        steps += _ACCESS_STEPS * int(sum(each.requests * each.active_lanes for each in of_first))
    return problem.bytes(shape) <= MOST_BYTES and steps <= BUDGET.alone


def _scattered(kernel: Kernel) -> str:
    """An array that a thread loads from and others store to, at an index from memory and without atomics."""
    of_grid = [each for each in kernel.accesses if each.space is Space.GLOBAL]
    stored = {each.array for each in of_grid if each.kind is AccessKind.STORE and each.basis is Basis.DATA_DEPENDENT}
    return next((each.array for each in of_grid if each.kind is AccessKind.LOAD and each.array in stored), None) or ""


def _guessed_block(kernel: Kernel) -> str:
    """Why a run would prove nothing: threads share memory by a shape of the block that another file gives."""
    if not kernel.shared_arrays or any(launch.basis is Basis.EXACT for launch in kernel.launches):
        return ""
    others = (Path(each.path).name for each in files_that_launch(kernel.source.path, kernel.name))
    other = next(others, "")
    return f"{other} gives {kernel.name} the shape of its blocks, which is not known here." if other else ""
