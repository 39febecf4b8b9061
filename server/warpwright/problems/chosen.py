"""Which of a problem's shapes one run of a kernel takes."""

from __future__ import annotations

from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape

MOST_THREADS = 1 << 20
"""Of the launch at a shape that nobody asked for: it ends in seconds, emulated too."""


def chosen_shape(problem: Problem, asked: Shape, first: Shape | None) -> Shape | Missing:
    """`first` where there is one, else the largest of the shapes to check at whose launch is small; `asked` gives some
    symbols another size."""
    if unknown := sorted(set(asked) - set(problem.symbols)):
        known = f"its symbols are {', '.join(problem.symbols)}" if problem.symbols else "its problem has no symbols"
        reason = f"{problem.kernel} has no size `{unknown[0]}`: {known}."
        return Missing("shape", reason, "`warpwright problem` lists them.")
    if first is not None or set(asked) == set(problem.symbols):  # the latter where the problem has none, too
        return {**(first or {}), **asked}
    fitting = [shape for shape in problem.check if 0 < _threads(problem, shape) <= MOST_THREADS]
    if fitting:
        sizes = [_threads(problem, shape) for shape in fitting]
        return {**fitting[sizes.index(max(sizes))], **asked}
    reason = f"No small size is known at which {problem.kernel} can be launched."
    return Missing("shape", reason, "Give one, as in --shape n=1000.")


def _threads(problem: Problem, shape: Shape) -> int:
    """Of the whole launch; 0 where there is none at that shape."""
    try:
        case = problem.case(shape)
    except ExpressionError:
        return 0
    x, y, z = case.grid
    a, b, c = case.block
    return x * y * z * a * b * c
