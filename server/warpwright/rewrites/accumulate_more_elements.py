"""Let each thread put several elements together before the blocks meet at one address.

## Before

```cuda
__global__ void sum(int *total, const int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int part = 0;
  if (i < n)
    part += in[i];
  for (int offset = 16; offset > 0; offset /= 2)
    part += __shfl_down_sync(0xffffffff, part, offset);
  if (threadIdx.x % 32 == 0)
    atomicAdd(total, part);
}

void run(int *total, const int *in, int n) {
  sum<<<(n + 255) / 256, 256>>>(total, in, n);
}
```

## After

```cuda
__global__ void sum(int *total, const int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int part = 0;
  for (; i < n; i += blockDim.x * gridDim.x)
    part += in[i];
  for (int offset = 16; offset > 0; offset /= 2)
    part += __shfl_down_sync(0xffffffff, part, offset);
  if (threadIdx.x % 32 == 0)
    atomicAdd(total, part);
}

void run(int *total, const int *in, int n) {
  sum<<<((n + 255) / 256 < 1024 ? (n + 255) / 256 : 1024), 256>>>(total, in, n);
}
```

## Assumes

- The work on an element does nothing but combine values by `+`, `*`, `&`, `|`, `^`, min or max into variables that
  start at the neutral number, and what follows combines these by the same operation and in the same type up to an
  atomic: then the result is the same however the elements are split among the blocks.
- Nothing but the element's index depends on the block's index. All launches are in this file, with one-dimensional
  blocks and a grid that is seen to cover the elements.
- The number of elements and 262,144 together stay under the largest value of the index's type.

## Cost

A comparison and an addition for each element. Blocks stay for longer. Integer sums stay the same bit for bit. The order
in which atomics add floats was never fixed; other parts change it once more, so the last bits can change: the error of
any order of n numbers is at most about n * 2^-24 * sum(|x|) in float and n * 2^-53 * sum(|x|) in double (N. J. Higham,
Accuracy and Stability of Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._accumulate import is_exact
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    macros_naming,
    matched,
    names,
    require_marked,
)
from warpwright.rewrites._elementwise import (
    Elements,
    declares,
    inner_statements,
    leaves_traces,
    not_the_thread,
    without_const,
)
from warpwright.rewrites._first_thread import conjuncts
from warpwright.rewrites._grids import capped, grid_formula, launches_in_sight, uncovered
from warpwright.rewrites._launched import in_header
from warpwright.rewrites._layout import indent_unit, line_of
from warpwright.rewrites._limits import THREADS
from warpwright.rewrites._linear_tail import ATOMIC_OPERATIONS, Tail
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import RowLoop, accumulated, updates_of
from warpwright.rewrites._thread_numbers import OF_GRID
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Span

NAME = "accumulate-more-elements"
title = "Accumulate several elements per thread"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.SIZES)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    require_marked(kernel, at)
    reason = "No `if` here tests an element's index before an atomic takes the thread's result."
    statements = uncommented(block)
    for place in range(len(statements)):
        try:
            matched = _matched(kernel, statements, place)
            if matched is not None:
                return _rewrite(kernel, block, *matched, tuple(statements[place + 1 :]))
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _matched(kernel: Kernel, statements: list[Node], place: int) -> tuple[Elements, list[Node]] | None:
    """The work on an element under `if (i < n && others)`, and those others; None where a statement is no such `if`."""
    source, guard = kernel.source, statements[place]
    clause = guard.child_by_field_name("condition") if guard.type == "if_statement" else None
    test = clause.child_by_field_name("value") if clause is not None else None
    called = (called_name(c, source) for s in statements[place + 1 :] for c in descendants(s, "call_expression"))
    if test is None or guard.child_by_field_name("alternative") is not None or not ATOMIC_OPERATIONS.keys() & called:
        return None
    first, *others = conjuncts(test)
    left, right = first.child_by_field_name("left"), first.child_by_field_name("right")
    operator = next((child.type for child in first.children if not child.is_named), "")
    if operator == ">":
        left, right, operator = right, left, "<"
    if first.type != "binary_expression" or operator != "<" or left is None or right is None:
        return None
    index, before = source.node_text(left), statements[:place]
    declared = [s for s in before if declares(source, s, index)]
    initial = locals_of(kernel).values.get(index)
    if len(declared) != 1 or initial is None:
        return None
    work = tuple(inner_statements(guard))
    return Elements(index, declared[0], initial, guard, right, False, work, tuple(before)), others


def _rewrite(kernel: Kernel, block: Node, elements: Elements, others: list[Node], behind: tuple[Node, ...]) -> Rewrite:
    source = kernel.source
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if reason := in_header(kernel):
        raise NoMatchError(reason)
    then = elements.guard.child_by_field_name("consequence") or elements.guard
    if reason := unfit_call(kernel, elements.guard):
        raise NoMatchError(reason)
    if tied := TIES.search(source.node_code(elements.guard)):
        raise NoMatchError(f"`{tied.group()}` ties the threads together that work on their elements.")
    for leave in descendants(block, "return_statement"):
        raise NoMatchError(f"Threads may leave at line {line_of(source, leave)}.")
    _require_index_alone(kernel, block, elements)
    try:
        updates = updates_of(kernel, elements.guard, then)
    except NoMatchError as other:
        line = line_of(source, elements.guard)
        raise NoMatchError(f"The `if` at line {line} does more than put values together in variables.") from other
    loop = RowLoop(elements.guard, elements.index, elements.initial, elements.guard, updates)
    parts = {name: (operation, kind) for name, (operation, _, kind) in accumulated(kernel, block, loop).items()}
    tail = Tail(kernel, parts)
    tail.follow(behind)
    if not parts or not tail.atomics:
        raise NoMatchError(f"Nothing to gain: no atomic of {kernel.name} takes what the `if` puts together.")
    if reason := leaves_traces(kernel, elements):
        raise NoMatchError(reason)
    exact = all(is_exact(operation, kind) for operation, kind in parts.values())
    listed = ", ".join(parts)
    rounding = (
        "" if exact else " The order of the sum, which atomics never fixed, changes, so the last bits can change."
    )
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*_launch_edits(kernel, elements), *_kernel_edits(kernel, block, elements, others)),
        explanation=(
            f"Each thread put one element into {listed}, and each block then waited for its warps and for its turn at "
            f"the address of the atomic. Now no more blocks are launched than a GPU holds at once; their threads go "
            f"through the elements in steps of the grid, so that most of the work is loads.{rounding}"
        ),
        safe=exact,
    )


def _require_index_alone(kernel: Kernel, block: Node, elements: Elements) -> None:
    """Nothing but the element's index, used in its `if` alone, depends on the block's index."""
    source, index = kernel.source, elements.index
    if macros := macros_naming(source, re.compile(rf"{OF_GRID.pattern}|\b{re.escape(index)}\b")):
        text = source.node_code(block)
        if used := next((m for m in macros if re.search(rf"\b{re.escape(m)}\b", text)), None):
            raise NoMatchError(f"The macro {used} names `{index}` or the block's index.")
    declared = elements.declaration
    for use in descendants(block, "identifier"):
        name = source.node_text(use)
        in_guard = elements.guard.start_byte <= use.start_byte < elements.guard.end_byte
        in_declaration = declared.start_byte <= use.start_byte < declared.end_byte
        if (OF_GRID.fullmatch(name) and not in_declaration) or (name == index and not (in_guard or in_declaration)):
            raise NoMatchError(f"`{name}` is used at line {line_of(source, use)}, where another element is meant.")
    bound = {source.node_text(n) for n in descendants(elements.bound, "identifier")}
    fixed = locals_of(kernel)
    for name in sorted(bound):
        if name in fixed.types and not fixed.is_fixed(name):
            raise NoMatchError(f"The bound `{source.node_text(elements.bound)}` may change.")
    if any(names(elements.bound, source, index)) or "threadIdx" in source.node_code(elements.bound):
        raise NoMatchError(f"The bound `{source.node_text(elements.bound)}` depends on the thread.")


def _launch_edits(kernel: Kernel, elements: Elements) -> list[TextEdit]:
    launches = matched(launches_in_sight(kernel))
    if reason := not_the_thread(kernel, elements, launches):
        raise NoMatchError(reason)
    edits: list[TextEdit] = []
    for launch in launches:
        if reason := uncovered(kernel, launch, elements.bound):
            raise NoMatchError(reason)
        grid, most = grid_formula(kernel.source, launch), THREADS // (launch.block[0] or 1)
        known = grid.value({}) if grid is not None and not grid.symbols else launch.grid[0]
        if known is not None and known < 2 * most:
            raise NoMatchError(
                f"Nothing to gain: the {int(known)} blocks at {launch.source} are hardly more than a wave."
            )
        edit = matched(capped(kernel.source, launch, most))
        edits.append(edit)
    return edits


def _kernel_edits(kernel: Kernel, block: Node, elements: Elements, others: list[Node]) -> list[TextEdit]:
    source, index, guard = kernel.source, elements.index, elements.guard
    clause = guard.child_by_field_name("condition") or guard
    header = f"for (; {index} < {source.node_text(elements.bound)}; {index} += blockDim.x * gridDim.x)"
    edits = without_const(source, elements.declaration)
    if not others:
        return [*edits, TextEdit(guard.start_byte, clause.end_byte, header)]
    unit, indent = indent_unit(source, block), source.line_indent(guard.start_byte)
    header = "".join(f"{source.node_text(c)}\n{indent}" for c in descendants(clause, "comment")) + header
    tests = " && ".join(source.node_text(other) for other in others)
    head = TextEdit(guard.start_byte, clause.end_byte, f"{header}\n{indent}{unit}if ({tests})")
    first = source.position(clause.end_byte)[0]
    last = source.position(guard.end_byte)[0]
    starts = [source.line_starts[line - 1] for line in range(first + 1, last + 1) if source.line_text(line).strip()]
    return [*edits, head, *(TextEdit(start, start, unit) for start in starts)]
