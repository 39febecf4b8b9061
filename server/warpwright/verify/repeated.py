"""A kernel that does in one launch what a host loop launched another one for, once for each part of its arrays.

Example: `for (int r = 0; r < rows; ++r) scale<<<blocks, 256>>>(y + r * n, n);` became
`scale_batched<<<dim3(blocks, rows), 256>>>(y, n);`, whose blocks have the loop's index in `blockIdx.y`. The original's
side of the comparison launches its kernel as often as the new grid has rows, which is how often the loop runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tree_sitter import Node

from warpwright.facts.launch_loops import MOST_ROWS, STEP_WORD, LaunchLoop, Moved, is_alike, launch_loop, loop_around
from warpwright.facts.model import Kernel, Program
from warpwright.problems.model import Argument, Array, Problem, Scalar, Step
from warpwright.rewrites._formulas import formula
from warpwright.syntax.names import template_arguments, unqualified
from warpwright.syntax.nodes import descendants, launch_configuration, uncommented
from warpwright.syntax.source import Source

_ROWS = re.compile(r"\bgridDim\.y\b")


def batched_loop(old: Program, new: Source, before: Node, after: Node) -> LaunchLoop | None:
    """The loop around the launch `before`, if the launch `after` makes all of its iterations the rows of one grid,
    or of one for each MOST_ROWS of them; None where that is not certain from the texts."""
    source = old.source
    loop = launch_loop(source, before)
    function = before.child_by_field_name("function")
    kernel = old.kernel(unqualified(source.node_text(function))) if function is not None else None
    if isinstance(loop, str) or not is_alike(source, loop) or kernel is None:
        return None
    launches = [each for each in kernel.launches if each.span is not None and each.span.line == _line(source, before)]
    if not launches or any(launch.grid[1:] != (1, 1) for launch in launches):
        return None
    chunks = launch_loop(new, after, str(MOST_ROWS))
    handed = [new.node_text(a) for a in uncommented(after.child_by_field_name("arguments"))]
    count = source.node_text(loop.count)
    if isinstance(chunks, LaunchLoop):
        same = [source.node_text(a.node) for a in loop.arguments] == handed and _head(new, chunks) == _head(
            source, loop
        )
        left = f"{count}-{loop.variable}"
        rows = {f"min({left},{MOST_ROWS})", f"min((int)({left}),{MOST_ROWS})"}
    else:
        outer, around = loop_around(loop.loop), loop_around(after)
        same = [a.base for a in loop.arguments] == handed and _header(source, outer) == _header(new, around)
        rows = {_squeezed(count)}
    return loop if same and _is_row_of_grids(source, before, new, after, {_squeezed(r) for r in rows}) else None


def repeated(source: Source, kernel: Kernel, loop: LaunchLoop, problem: Problem) -> Problem | str:
    """The original's side of the new kernel's problem: its kernel launched for each row of the new grid, its arrays
    moved on as the loop moves them; a reason where how far is not known."""
    scalars = {
        _squeezed(source.node_text(argument.node)): given.value
        for argument, given in zip(loop.arguments, problem.arguments, strict=False)
        if isinstance(given, Scalar)
    }
    moves: list[str] = []
    for argument in loop.arguments:
        factors: list[str] = []
        for factor in argument.step or ():
            words = {each.group() for each in STEP_WORD.finditer(factor)}
            known = {w: scalars.get(_squeezed(w)) or _constant(source, argument, w) for w in words}
            whole = scalars.get(_squeezed(factor))
            if whole is None and None in known.values():
                return f"by how far `{source.node_text(argument.node)}` moves is not known: `{factor}`"
            factors.append(f"({whole or _with_values(factor, known)})")
        moves.append("0" if argument.step is None else " * ".join(factors) or "1")
    names = tuple(argument.name for argument in problem.arguments)
    written = template_arguments(source.node_text(loop.call).partition("<<<")[0])
    step = Step(kernel.name, written, names, problem.grid[1], tuple(moves))
    arguments = tuple(_of_all_rows(argument, problem.grid[1]) for argument in problem.arguments)
    grid = (problem.grid[0], "1", problem.grid[2])
    return replace(problem, kernel=kernel.name, arguments=arguments, grid=grid, steps=(step,))


def _of_all_rows(argument: Argument, rows: str) -> Argument:
    """An argument whose size does not depend on the launch: each of the original's has one row."""
    if isinstance(argument, Array):
        extent, values = (_ROWS.sub(f"({rows})", text) for text in (argument.extent, argument.values))
        return replace(argument, extent=extent, values=values)
    return replace(argument, value=_ROWS.sub(f"({rows})", argument.value)) if isinstance(argument, Scalar) else argument


def _with_values(factor: str, known: Mapping[str, str | None]) -> str:
    return STEP_WORD.sub(lambda each: f"({known[each.group()]})", factor)


def _constant(source: Source, argument: Moved, name: str) -> str | None:
    """What a name in an argument is as a number, through macros and constants; None where the text leaves it open."""
    for node in descendants(argument.node, "identifier"):
        if source.node_text(node) == name and (known := formula(source, node)) is not None and not known.symbols:
            value = known.value({})
            return str(value) if isinstance(value, int) else None
    return None


def _is_row_of_grids(old: Source, before: Node, new: Source, after: Node, rows: set[str]) -> bool:
    """Whether the second launch has the first's block, shared memory and stream, and its grid with `rows` in y."""
    one, other = (uncommented(launch_configuration(call)) for call in (before, after))
    if len(one) != len(other) or len(one) < 2:
        return False
    if [_squeezed(old.node_text(n)) for n in one[1:]] != [_squeezed(new.node_text(n)) for n in other[1:]]:
        return False
    grid = other[0]
    called = grid.child_by_field_name("function") if grid.type == "call_expression" else None
    extents = [_squeezed(new.node_text(n)) for n in uncommented(grid.child_by_field_name("arguments"))]
    if called is None or new.node_text(called) != "dim3" or len(extents) != 2:
        return False
    blocks = _squeezed(old.node_text(one[0]))
    return extents[0] in (blocks, f"{blocks}.x") and extents[1] in rows


def _head(source: Source, loop: LaunchLoop) -> tuple[str, ...]:
    return loop.variable, loop.type, _squeezed(source.node_text(loop.count))


def _header(source: Source, loop: Node | None) -> str:
    """A loop's text up to its body; "" for none."""
    body = loop.child_by_field_name("body") if loop is not None else None
    return _squeezed(source.text(loop.start_byte, body.start_byte)) if loop is not None and body is not None else ""


def _line(source: Source, node: Node) -> int:
    return source.position(node.start_byte)[0]


def _squeezed(text: str) -> str:
    return "".join(text.split())
