"""Give each thread several elements, so that more loads are on their way at a time.

## Before

```cuda
__global__ void axpy(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 2.0f * x[i] + y[i];
}

void run(float *out, const float *x, const float *y, int n) {
  axpy<<<(n + 255) / 256, 256>>>(out, x, y, n);
}
```

## After

```cuda
__global__ void axpy(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, int n) {
  #pragma unroll
  for (int e = 0; e < 4; e++) {
    int i = (blockIdx.x * 4 + e) * blockDim.x + threadIdx.x;
    if (i < n)
      out[i] = 2.0f * x[i] + y[i];
  }
}

void run(float *out, const float *x, const float *y, int n) {
  axpy<<<((n + 255) / 256 + 3) / 4, 256>>>(out, x, y, n);
}
```

A `return` of the kernel becomes a `continue`.

## Assumes

- Every launch is in this file. A block that is beyond the old grid finds nothing to do: the kernel tests its index
  against the number of elements that the grid is made of, or the grid is a multiple of the new number of elements.
- Blocks have nothing to do with each other, and threads neither: no shared memory, barrier, atomic or exchange.
- The compiler may load before it stores: `__restrict__` tells each array that is read from those that are written.
- Indices of 32 bits have room for the elements of 4 blocks more.

## Cost

Registers for the elements that are on their way, and fewer blocks: a small grid fills fewer multiprocessors. Results
stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.aliasing import restricted
from warpwright.facts.model import AccessKind, Kernel, Launch, Space
from warpwright.rewrites._code import NoMatchError, body, host_launches, macros_naming, squeezed
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._launch_shape import covers, grid_divided
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._locals import declared_name, declared_names
from warpwright.rewrites._movable import block_of_all_launches, unmovable
from warpwright.rewrites._row_loop import root_name
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source, Span

NAME = "coarsen-threads"
title = "Give each thread several elements"
goals = ("speed",)

BYTES = 16
"""What a thread should have on its way of each array: the widest access."""
FEWEST_BLOCKS = 1024
"""Of a grid that is known: with fewer, a quarter of it leaves multiprocessors idle (an H200 has 132)."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    reason, block = unmovable(kernel), body(kernel)
    if reason or block is None:
        return Declined(NAME, reason)
    try:
        count = _count(kernel)
        _require_independent(kernel, block)
        shape = block_of_all_launches(kernel)
        if isinstance(shape, str):
            raise NoMatchError(shape)
        return _rewrite(kernel, block, indices_of(kernel, shape), count)
    except NoMatchError as mismatch:
        return Declined(NAME, str(mismatch))


def _rewrite(kernel: Kernel, block: Node, indices: Indices, count: int) -> Rewrite:
    source = kernel.source
    statements = [c for c in block.named_children if c.type != "comment"]
    first = next((n for n, s in enumerate(statements) if _names_block(source, s)), None)
    if first is None:
        raise NoMatchError(f"{kernel.name} does not use blockIdx.x.")
    for statement in statements[:first]:
        if statement.type != "declaration":
            raise NoMatchError(
                f"Line {line_of(source, statement)} stands before the index, and may not run once alone."
            )
    per_element = statements[first:]
    if source.text(0, per_element[0].start_byte).rpartition("\n")[2].strip():
        raise NoMatchError(
            f"Line {line_of(source, per_element[0])} has other code before the index, where no directive can stand."
        )
    _require_own(kernel, statements[:first], per_element)
    tested = _tested(kernel, indices, per_element)
    edits: list[TextEdit] = []
    for launch in host_launches(kernel):
        known = launch.grid[0]
        whole = known is not None and known % count == 0
        if not whole and not (tested and covers(kernel, launch, tested)):
            raise NoMatchError(
                f"Whether the grid of the launch at {launch.source} is made of the number of elements that "
                f"{kernel.name} tests its index against is not certain."
            )
        _require_large(launch, count)
        divided = grid_divided(kernel, launch, count)
        if isinstance(divided, str):
            raise NoMatchError(divided)
        edits.append(divided)
    return Rewrite(
        NAME,
        f"Give each thread {count} elements",
        source,
        (_loop(source, block, per_element, count), *edits),
        f"A thread of {kernel.name} loaded one element of each array and then waited for it. Now it does {count} "
        f"elements, a block apart: their loads are issued together, so {count} times as many bytes are on their way, "
        f"and neighbouring lanes still use neighbouring addresses. The grid has {count} times fewer blocks; each "
        "thread needs more registers.",
    )


def _count(kernel: Kernel) -> int:
    """Elements for each thread. Raises NoMatchError where more loads at a time cannot be had or would not help."""
    loads = [a for a in kernel.accesses if a.space is Space.GLOBAL and a.kind is AccessKind.LOAD and a.by_thread]
    stored = {a.array for a in kernel.accesses if a.space is Space.GLOBAL and a.kind is AccessKind.STORE}
    if any(a.in_loop for a in kernel.accesses):
        raise NoMatchError("Nothing to gain: each thread has a loop, and so several elements, already.")
    if not loads or not stored:
        raise NoMatchError("Nothing to gain: the kernel does not load elements and store others.")
    apart = restricted(kernel)
    for load in loads:
        for array in stored:
            if load.array == array or not {load.array, array} & apart:
                raise NoMatchError(
                    f"Nothing to gain: as far as the compiler knows a store to {array} may change {load.array}, so it "
                    "would load one element after the other."
                )
    widest = max(max(a.bytes, a.value_bytes) for a in loads)
    if widest > BYTES // 2:
        raise NoMatchError(f"Nothing to gain: each thread loads {widest} bytes at a time already.")
    return 2 if widest > BYTES // 4 else 4


def _require_independent(kernel: Kernel, block: Node) -> None:
    source, text = kernel.source, kernel.source.node_text(block)
    if found := re.search(TIES.pattern + r"|\batomic\w*", text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}`, so its threads are not independent.")
    if re.search(r"\bgridDim\b", text):
        raise NoMatchError(f"{kernel.name} uses gridDim, which would have another value.")
    for macro in macros_naming(source, re.compile(r"\b(?:blockIdx|gridDim)\b")):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"{kernel.name} uses the macro {macro}, which reads the block's number.")
    for loop in descendants(block, "for_statement", "while_statement", "do_statement", "switch_statement"):
        raise NoMatchError(f"Nothing to gain: the thread goes on with other work at line {line_of(source, loop)}.")
    for use in descendants(block, "identifier"):
        if source.node_text(use) == "blockIdx" and (use.parent is None or use.parent.type != "field_expression"):
            raise NoMatchError(f"`blockIdx` is used as a whole at line {line_of(source, use)}.")
    if reason := unfit_call(kernel, block):
        raise NoMatchError(reason)


def _require_own(kernel: Kernel, before: list[Node], statements: list[Node]) -> None:
    """What runs for each element changes no variable but its own, nor a part of one."""
    source = kernel.source
    for address in (n for s in before for n in descendants(s, "pointer_expression", "reference_declarator")):
        raise NoMatchError(
            f"`{source.node_text(address)}` at line {line_of(source, address)} may be changed for all elements."
        )
    pointers = {declared_name(source, d) for s in before for d in descendants(s, "pointer_declarator")}
    into_arrays = pointers if any(True for s in before for _ in descendants(s, "array_declarator")) else set[str]()
    parameters = {p.name for p in kernel.parameters if not p.is_pointer}
    numbers = parameters | (declared_names(source, *before) - pointers) | into_arrays
    own = declared_names(source, *statements)
    for statement in statements:
        for change in descendants(statement, "assignment_expression", "update_expression"):
            target = change.child_by_field_name("left") or change.child_by_field_name("argument")
            name = root_name(source, target) if target is not None else ""
            shared = target is not None and (target.type == "identifier" or name in numbers)
            if target is not None and shared and name not in own:
                raise NoMatchError(
                    f"`{source.node_text(target)}` changes at line {line_of(source, change)} for all elements."
                )


def _names_block(source: Source, statement: Node) -> bool:
    return re.search(r"\bblockIdx\s*\.\s*x\b", source.node_text(statement)) is not None


def _tested(kernel: Kernel, indices: Indices, statements: list[Node]) -> str:
    """The parameter that the index in x is tested against before anything is loaded or stored; empty for none."""
    source = kernel.source
    for place, statement in enumerate(statements):
        if statement.type == "declaration" and not any(True for _ in descendants(statement, "subscript_expression")):
            continue
        last = place == len(statements) - 1 and statement.child_by_field_name("alternative") is None
        early = is_early_return(statement)
        if statement.type != "if_statement" or not (early or last):
            return ""
        clause = statement.child_by_field_name("condition")
        test = clause.child_by_field_name("value") if clause is not None else None
        for condition in comparisons(source, test, leaves=early) or []:
            index = indices.read(condition.left)
            bound = source.node_text(condition.right)
            wanted = {("blockIdx.x",): (indices.block or (0,))[0], ("threadIdx.x",): 1}
            fixed = bound in indices.variables.parameters and indices.variables.is_fixed(bound)
            if condition.operator == "<" and index == wanted and fixed:
                return bound
        if not early:
            return ""
    return ""


def _require_large(launch: Launch, count: int) -> None:
    x, y, z = launch.grid
    if x is not None and y is not None and z is not None and x * y * z < FEWEST_BLOCKS:
        raise NoMatchError(
            f"Nothing to gain: the grid at {launch.source} has {x * y * z} blocks, and {count} times fewer would leave "
            "multiprocessors idle."
        )


def _loop(source: Source, block: Node, statements: list[Node], count: int) -> TextEdit:
    start, end = statements[0].start_byte, statements[-1].end_byte
    counter, unit = free_name(source.text(), "e"), indent_unit(source, block)
    old = source.line_indent(start)
    inner, at = "", start
    for node in (n for s in statements for n in descendants(s, "field_expression", "return_statement")):
        returns = node.type == "return_statement"
        if returns or squeezed(source.node_text(node)) == "blockIdx.x":
            inner += source.text(at, node.start_byte)
            inner += "continue;" if returns else f"({source.node_text(node)} * {count} + {counter})"
            at = node.end_byte
    inner = reindented(inner + source.text(at, end), old, old + unit)
    head = f"#pragma unroll\n{old}for (int {counter} = 0; {counter} < {count}; {counter}++) {{\n{old}{unit}"
    return TextEdit(start, end, f"{head}{inner}\n{old}}}")
