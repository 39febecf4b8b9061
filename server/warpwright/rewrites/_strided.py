"""Kernels whose threads walk over all elements by the size of the grid: `for (int i = ...; i < n; i += stride)`."""

from __future__ import annotations

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.facts.model import Basis, Kernel
from warpwright.rewrites._code import body, host_launches, in_macro
from warpwright.rewrites._elementwise import Elements, declares, initial_value, inner_statements
from warpwright.rewrites._formulas import formula
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_BLOCK, _SIZE, _THREAD, _GRID = "blockIdx.x", "blockDim.x", "threadIdx.x", "gridDim.x"


def match_strided(kernel: Kernel) -> Elements | None:
    """The parts of a kernel that ends with such a loop; `guard` is the loop, and `declaration` in it or before it.

    None for any other kernel.
    """
    block, source = body(kernel), kernel.source
    if block is None or in_macro(block):
        return None
    if any(True for _ in descendants(block, "preproc_if", "preproc_ifdef", "preproc_def")):
        return None
    statements = uncommented(block)
    loop = statements[-1] if statements else None
    if loop is None or loop.type != "for_statement":
        return None
    before = [s for s in statements[:-1] if s.type != "preproc_call"]  # such as `#pragma unroll`
    header = _header(source, loop)
    if header is None:
        return None
    index, bound = header
    initializer = loop.child_by_field_name("initializer")
    declared = [initializer] if initializer is not None else before
    declarations = [d for d in declared if declares(source, d, index, kernel.number_types)]
    work = inner_statements(loop, "body")
    initial = initial_value(declarations[0]) if len(declarations) == 1 else None
    if initial is None or not work:
        return None
    return Elements(index, declarations[0], initial, loop, bound, False, tuple(work), tuple(before))


def step_of(source: Source, loop: Node) -> Node | None:
    """What a loop adds to its index after each iteration, in `i += step` and `i = i + step`."""
    update = loop.child_by_field_name("update")
    left, right = (update.child_by_field_name(f) for f in ("left", "right")) if update is not None else (None, None)
    operator = update.child_by_field_name("operator") if update is not None else None
    if update is None or update.type != "assignment_expression" or left is None or right is None or operator is None:
        return None
    if operator.type == "+=":
        return right
    sides = [right.child_by_field_name("left"), right.child_by_field_name("right")]
    sum_of = right.child_by_field_name("operator")
    if operator.type != "=" or sum_of is None or sum_of.type != "+":
        return None
    others = [side for side in sides if side is not None and source.node_text(side) != source.node_text(left)]
    return others[0] if len(others) == 1 else None


def _header(source: Source, loop: Node) -> tuple[str, Node] | None:
    """The index and the bound of `for (...; i < n; i += step)`."""
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    if condition is None or condition.type != "binary_expression" or update is None or step_of(source, loop) is None:
        return None
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator, target = condition.child_by_field_name("operator"), update.child_by_field_name("left")
    if left is None or right is None or operator is None or target is None:
        return None
    if operator.type == ">":
        left, right = right, left
    same = left.type == "identifier" and source.node_text(left) == source.node_text(target)
    return (source.node_text(left), right) if operator.type in ("<", ">") and same else None


def not_all_elements(kernel: Kernel, elements: Elements) -> str:
    """Why the threads together may not take each element below the bound; empty where they do."""
    source, loop = kernel.source, elements.guard
    step = step_of(source, loop)
    start, ahead = formula(source, elements.initial), formula(source, step) if step is not None else None
    reason = f"The loop over `{elements.index}` is not known to be a grid-stride loop over all elements."
    symbols = {_BLOCK, _SIZE, _THREAD, _GRID}
    if start is None or ahead is None or not start.symbols <= symbols or not ahead.symbols <= symbols:
        return reason
    launches = host_launches(kernel)
    known = [launch.block[0] for launch in launches if launch.basis is Basis.EXACT and launch.block[0]]
    sizes: list[Values] = [{_SIZE: size} for size in dict.fromkeys(known)] if len(known) == len(launches) else []

    def is_whole(values: Values) -> bool:
        thread = values[_BLOCK] * values[_SIZE] + values[_THREAD]
        return start.value(values) == thread and ahead.value(values) == values[_GRID] * values[_SIZE]

    if not all(holds(is_whole, frozenset(symbols), size) for size in sizes or [{}]):
        return reason
    for jump in (n for s in elements.work for n in descendants(s, "continue_statement", "break_statement")):
        around = enclosing(jump, *LOOPS, *(("switch_statement",) if jump.type[0] == "b" else ()))
        if around == loop:
            line = source.position(jump.start_byte)[0]
            return f"`{source.node_text(jump)}` at line {line} leaves the work on an element before its end."
    return ""
