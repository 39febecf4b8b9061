"""What a kernel knows of how many blocks it has in x, and its barriers."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import condition_of, host_launches, squeezed, with_names
from warpwright.rewrites._formulas import Formula, formula, same
from warpwright.rewrites._grids import arguments_of, call_of, grid_formula, written_extent
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.syntax.nodes import descendants, uncommented


@dataclass(frozen=True, slots=True)
class Bound:
    """The number of blocks in x as the kernel writes it: a parameter, or an expression of some."""

    text: str
    formulas: tuple[Formula, ...]

    def __str__(self) -> str:
        return self.text


def bound_of(kernel: Kernel) -> Bound | str:
    """How many blocks in x every launch has, in the kernel's own names; a reason where it cannot say so.

    Example: `rows` for `<<<rows, 1>>>(out, in, rows)`, `width / 4` for `<<<dim3(width / 4, h), 4>>>(out, width)`.
    """
    source, launches = kernel.source, host_launches(kernel)
    unknown = f"{kernel.name} is not told how many blocks it has in x, so it could not leave out what is too much."
    fixed = locals_of(kernel)
    grids = [grid_formula(source, launch) for launch in launches]
    if not grids or any(grid is None for grid in grids):
        return unknown
    known = tuple(grid for grid in grids if grid is not None)
    for parameter in kernel.parameters:
        given = [arguments_of(kernel, launch).get(parameter.name) for launch in launches]
        equal = [g is not None and same(g, grid) for g, grid in zip(given, known, strict=True)]
        if not parameter.is_pointer and fixed.is_fixed(parameter.name) and all(equal):
            return Bound(parameter.name, known)
    written = {_in_parameters(kernel, place) for place in range(len(launches))}
    text = written.pop() if len(written) == 1 else None
    return Bound(text, known) if text else unknown


def _in_parameters(kernel: Kernel, place: int) -> str | None:
    """The grid's extent of a launch with each variable as the parameter that it is handed over for."""
    source, launch = kernel.source, host_launches(kernel)[place]
    node, call, fixed = written_extent(source, launch), call_of(launch), locals_of(kernel)
    if node is None or call is None:
        return None
    names_of: dict[str, str] = {}
    uses = list(descendants(node, "identifier"))
    for argument, parameter in zip(uncommented(call.child_by_field_name("arguments")), kernel.parameters, strict=False):
        if argument.type != "identifier" or parameter.is_pointer or not fixed.is_fixed(parameter.name):
            continue
        given = formula(source, argument)
        for use in uses:
            there = formula(source, use) if source.node_text(use) == source.node_text(argument) else None
            if given is not None and there is not None and same(given, there):
                names_of[source.node_text(use)] = parameter.name
    plain = not any(True for _ in descendants(node, "field_expression", "call_expression", "subscript_expression"))
    if not uses or not plain or any(source.node_text(use) not in names_of for use in uses):
        return None
    return with_names(source, node, names_of)


def limit_of(kernel: Kernel, block: Node) -> Node | None:
    """What the kernel tests its block's index against before all that it does: `rows` of `if (row < rows) {...}` and
    of `if (row >= rows) return;`, a parameter that it never changes. None where it does not."""
    source, fixed = kernel.source, locals_of(kernel)
    statements = uncommented(block)
    guard = next((n for n in statements if n.type == "if_statement"), None)
    if guard is None or guard.child_by_field_name("alternative") is not None:
        return None
    early, place = is_early_return(guard), statements.index(guard)
    others = statements[:place] if early else statements[:place] + statements[place + 1 :]
    if not all(is_plain(statement) for statement in others):
        return None
    for condition in comparisons(source, condition_of(guard), leaves=early) or []:
        limit = condition.right
        if condition.operator == "<" and is_number_of_block(kernel, condition.left) and limit.type == "identifier":
            name = source.node_text(limit)
            if name in fixed.parameters and fixed.is_fixed(name):
                return limit
    return None


def is_equal(kernel: Kernel, limit: Node, bound: Bound | str) -> bool:
    """Whether what the kernel tests against is seen to be the number of blocks at every launch."""
    if isinstance(bound, str):
        return False
    given = [formula(kernel.source, limit, arguments_of(kernel, launch)) for launch in host_launches(kernel)]
    return all(g is not None and same(g, blocks) for g, blocks in zip(given, bound.formulas, strict=True))


def is_number_of_block(kernel: Kernel, node: Node) -> bool:
    """Whether an expression is blockIdx.x, or a variable that is set to it."""
    text = squeezed(kernel.source.node_code(node))
    value = locals_of(kernel).values.get(text)
    if value is not None:
        text = squeezed(kernel.source.node_code(value))
    return text == "blockIdx.x"


def is_plain(statement: Node) -> bool:
    """Whether a statement declares something and touches no memory."""
    kinds = ("subscript_expression", "pointer_expression", "call_expression", "assignment_expression")
    return statement.type == "declaration" and not any(True for _ in descendants(statement, *kinds))


def barriers_of(kernel: Kernel, block: Node) -> list[Node] | str:
    """The kernel's calls of __syncthreads; a reason where a barrier stands elsewhere, or is another one."""
    source = kernel.source
    calls = [c for c in descendants(block, "call_expression") if called_name(c, source).startswith("__syncthreads")]
    for call in calls:
        if called_name(call, source) != "__syncthreads":
            return f"`{source.node_text(call)}` at line {line_of(source, call)} counts the threads of a block."
    for barrier in kernel.barriers:
        span = barrier.span
        if not any(span.source is source and c.start_byte <= span.start < c.end_byte for c in calls):
            return f"The barrier at line {span.line} is not in the text of {kernel.name} itself."
    return calls
