"""Coarsen: several elements per thread, so that more loads are in flight and fewer blocks have to start.

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

```cuda
__global__ void halve(float *__restrict__ out, const float *__restrict__ in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 0.5f * in[i];
}

void run(float *out, const float *in, int n) {
  halve<<<n / 256, 256>>>(out, in);
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

```cuda
__global__ void halve(float *__restrict__ out, const float *__restrict__ in) {
  #pragma unroll
  for (int e = 0; e < 4; e++) {
    int i = blockIdx.x * (blockDim.x * 4) + (threadIdx.x + e * blockDim.x);
    out[i] = 0.5f * in[i];
  }
}

void run(float *out, const float *in, int n) {
  halve<<<n / 256, 64>>>(out, in);
}
```

A `return` of the kernel becomes a `continue`. Blocks have fewer threads, and
not the grid fewer blocks, where threads beyond the grid that there is would not be seen to find nothing to do.

## Assumes

- Every launch is in this file. The grid has fewer blocks where a block that is beyond the old
  one finds nothing to do: the kernel tests its index against the number of elements that the grid is made of, or the
  grid is a multiple of the new number of elements.
- Blocks have nothing to do with each other, and threads neither: no shared memory, barrier, atomic or exchange.
- Loops are known to have no more than 16 steps.
- Indices of 32 bits have room for the elements of as many blocks more as a thread has elements.

## Cost

Registers for the elements that are on their way, and fewer threads: a small grid fills fewer multiprocessors. Where
the compiler has to take a store for one to what is loaded next, for want of `__restrict__`, loads follow each other.
Results stay the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from tree_sitter import Node

from warpwright.cuda.linkage import is_header
from warpwright.facts.aliasing import restricted
from warpwright.facts.model import WARP, AccessKind, Kernel, Launch, Space
from warpwright.rewrites._code import NoMatchError, host_launches, macros_of, matched, naming, squeezed
from warpwright.rewrites._grids import launches_of_flat_blocks, uncovered
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._indices import Indices, Polynomial, indices_of
from warpwright.rewrites._launch_shape import block_made_smaller, grid_divided
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._locals import declared_names
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._row_loop import root_name
from warpwright.rewrites._short_loops import SHORT, is_short
from warpwright.rewrites._thread_numbers import NUMBER
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import BREAKABLE, declared_name, descendants
from warpwright.syntax.source import Source, Span

NAME = "coarsen-threads"
title = "Coarsen: several elements per thread"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.SIZES)

BYTES = 16
"""The widest access: a thread that moves as much at a time has enough on its way."""
ELEMENTS = 4
_BLOCK = "blockIdx.x"
FEWEST_BLOCKS = 1024
"""Of a grid that is known: with fewer, a quarter of it leaves multiprocessors idle (an H200 has 132)."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    count = _count(kernel)
    _require_independent(kernel, block)
    shape = block_of_all_launches(kernel)
    if isinstance(shape, str):
        if is_header(kernel.source) or isinstance(launches_of_flat_blocks(kernel), str):
            raise NoMatchError(shape)
        return _rewrite(kernel, block, indices_of(kernel, None), count)
    return _rewrite(kernel, block, indices_of(kernel, shape), count)


def _rewrite(kernel: Kernel, block: Node, indices: Indices, count: int) -> Rewrite:
    source = kernel.source
    fewer = _fewer_blocks(kernel, block, indices, count)
    way = _ByGrid(count) if not isinstance(fewer, str) else _by_block(kernel, block, indices, count, fewer)
    statements = [c for c in block.named_children if c.type != "comment"]
    first = _first_naming(source, statements, way.tokens)
    if first is None:
        raise NoMatchError(f"{kernel.name} does not use {' or '.join(way.tokens)}.")
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
    edits = fewer if not isinstance(fewer, str) else _smaller_blocks(kernel, way, count)
    return Rewrite(
        NAME,
        f"Give each thread {count} elements",
        source,
        (_loop(source, block, per_element, way), *edits),
        f"A thread of {kernel.name} did one element and ended. Now it does {count}, a {way.apart} apart: their loads "
        "are issued together where nothing is stored in between that may change them, and consecutive lanes still use "
        f"consecutive addresses. {way.said} Each thread may need more registers.",
    )


@dataclass(frozen=True, slots=True)
class _ByGrid:
    """Each block takes the place of several that follow each other."""

    count: int
    tokens = (_BLOCK,)
    apart = "block"

    def replaced(self, counter: str) -> dict[str, str]:
        """What stands for each token in the work on an element."""
        return {_BLOCK: f"({_BLOCK} * {self.count} + {counter})"}

    @property
    def said(self) -> str:
        return (
            f"The grid has {self.count} times fewer blocks, of which an H200 was measured to start some 1.6 in a "
            "nanosecond, whatever they do."
        )


@dataclass(frozen=True, slots=True)
class _ByBlock:
    """Each block has several times fewer threads, and the place of each is taken by those that are left."""

    count: int
    axis: str

    @property
    def tokens(self) -> tuple[str, ...]:
        return (f"threadIdx.{self.axis}", f"blockDim.{self.axis}")

    apart = "block's threads"

    def replaced(self, counter: str) -> dict[str, str]:
        """What stands for each token in the work on an element."""
        thread, size = self.tokens
        return {thread: f"({thread} + {counter} * {size})", size: f"({size} * {self.count})"}

    @property
    def said(self) -> str:
        return f"A block has {self.count} times fewer threads and does what it did."


def _by_block(kernel: Kernel, block: Node, indices: Indices, count: int, reason: str) -> _ByBlock:
    """The axis along which blocks can be made smaller; raises `reason` where none is."""
    shape, text = indices.block or (0, 0, 0), kernel.source.node_code(block)
    if not re.search(r"\bblockIdx\b", text):
        raise NoMatchError(f"{kernel.name} does not use blockIdx.")
    for axis, extent in zip("xyz", shape, strict=True):
        rest = extent // count
        whole = rest and extent % count == 0
        if whole and (rest % WARP == 0 if axis == "x" else prod(shape) // count >= WARP):
            return _ByBlock(count, axis)
    raise NoMatchError(reason)


def _fewer_blocks(kernel: Kernel, block: Node, indices: Indices, count: int) -> list[TextEdit] | str:
    """Edits that give every launch that many times fewer blocks; or why the blocks have to stay as many."""
    statements = [c for c in block.named_children if c.type != "comment"]
    first = _first_naming(kernel.source, statements, (_BLOCK,))
    tested = _tested(kernel, indices, statements[first:]) if first is not None else None
    edits: list[TextEdit] = []
    for launch in host_launches(kernel):
        known = launch.grid[0]
        whole = known is not None and known % count == 0
        _require_large(launch, count)
        if not whole and (tested is None or uncovered(kernel, launch, tested)):
            return (
                f"Whether the grid of the launch at {launch.source} is made of the number of elements that "
                f"{kernel.name} tests its index against is not certain."
            )
        divided = grid_divided(kernel, launch, count)
        if isinstance(divided, str):
            return divided
        edits.append(divided)
    return edits


def _smaller_blocks(kernel: Kernel, way: _ByGrid | _ByBlock, count: int) -> list[TextEdit]:
    edits: list[TextEdit] = []
    for launch in host_launches(kernel):
        axis = way.axis if isinstance(way, _ByBlock) else "x"
        divided = matched(block_made_smaller(kernel, launch, axis, count))
        edits.append(divided)
    return edits


def _count(kernel: Kernel) -> int:
    """Elements for each thread. Raises NoMatchError where each thread has enough to do."""
    moved = [a for a in kernel.accesses if a.space is Space.GLOBAL]
    stored = [a for a in moved if a.kind is AccessKind.STORE]
    span = kernel.span
    inside = [a for a in kernel.accesses if a.span.path == span.path and span.start <= a.span.start <= span.end]
    if any(a.in_loop and (a not in inside or a.iterations > SHORT) for a in kernel.accesses):
        raise NoMatchError("Nothing to gain: each thread has a loop, and so several elements, already.")
    if not stored:
        raise NoMatchError(f"Nothing to gain: {kernel.name} stores no elements in global memory.")
    widest = max(max(a.bytes, a.value_bytes) for a in moved)
    if widest > BYTES // 2:
        raise NoMatchError(f"Nothing to gain: each thread moves {widest} bytes at a time already.")
    apart = restricted(kernel)
    loads = {a.array or "" for a in moved if a.kind is AccessKind.LOAD}
    for load, array in ((load, a.array or "") for load in sorted(loads) for a in stored):
        if widest > BYTES // 4 and (load == array or not {load, array} & apart):
            raise NoMatchError(
                f"Nothing to gain: a thread moves {widest} bytes at a time, and the compiler must assume that a store "
                f"to {array} may change {load}, so that it would load one element after the other."
            )
    return ELEMENTS


def _require_independent(kernel: Kernel, block: Node) -> None:
    source, text = kernel.source, kernel.source.node_code(block)
    if found := re.search(TIES.pattern + r"|\batomic\w*", text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}`, so its threads are not independent.")
    if re.search(r"\bgridDim\b", text):
        raise NoMatchError(f"{kernel.name} uses gridDim, which would have another value.")
    for macro in naming(macros_of(kernel), NUMBER):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"{kernel.name} uses the macro {macro}, which reads the block's index.")
    indices = indices_of(kernel, None)
    for loop in descendants(block, *BREAKABLE):
        if not is_short(indices, loop) or NUMBER.search(source.node_code(loop)):
            raise NoMatchError(f"Nothing to gain: the thread goes on with other work at line {line_of(source, loop)}.")
        for leave in descendants(loop, "return_statement"):
            raise NoMatchError(f"The kernel returns from within a loop at line {line_of(source, leave)}.")
    for use in descendants(block, "identifier"):
        if source.node_text(use) in ("blockIdx", "threadIdx", "blockDim") and (
            use.parent is None or use.parent.type != "field_expression"
        ):
            raise NoMatchError(f"`{source.node_text(use)}` is used as a whole at line {line_of(source, use)}.")
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


def _first_naming(source: Source, statements: list[Node], tokens: tuple[str, ...]) -> int | None:
    """The place of the first statement in which one of `blockIdx.x` and the like occurs."""
    return next(
        (
            place
            for place, statement in enumerate(statements)
            for member in descendants(statement, "field_expression")
            if squeezed(source.node_code(member)) in tokens
        ),
        None,
    )


def _tested(kernel: Kernel, indices: Indices, statements: list[Node]) -> Node | None:
    """What the index in x is tested against before anything is loaded or stored, made of parameters that stay; None
    where it is not tested."""
    source, pointers = kernel.source, {p.name for p in kernel.parameters if p.is_pointer}
    for place, statement in enumerate(statements):
        touches = any(True for _ in descendants(statement, "subscript_expression", "pointer_expression"))
        named = pointers & {source.node_text(n) for n in descendants(statement, "identifier")}
        if statement.type == "declaration" and not touches and not named:
            continue
        last = place == len(statements) - 1 and statement.child_by_field_name("alternative") is None
        early = is_early_return(statement)
        if statement.type != "if_statement" or not (early or last):
            return None
        clause = statement.child_by_field_name("condition")
        test = clause.child_by_field_name("value") if clause is not None else None
        for condition in comparisons(source, test, leaves=early) or []:
            index, bound = indices.read(condition.left), condition.right
            wanted: Polynomial = {("blockDim.x", "blockIdx.x"): 1, ("threadIdx.x",): 1}
            if indices.block is not None:
                wanted = {("blockIdx.x",): indices.block[0], ("threadIdx.x",): 1}
            words = {source.node_text(n) for n in descendants(bound, "identifier")}
            fixed = all(w not in indices.variables.parameters or indices.variables.is_fixed(w) for w in words)
            local = words & indices.variables.types.keys() - indices.variables.parameters
            plain = not any(True for _ in descendants(bound, "call_expression", "subscript_expression"))
            if condition.operator == "<" and index == wanted and fixed and plain and not local:
                return bound
        if not early:
            return None
    return None


def _require_large(launch: Launch, count: int) -> None:
    x, y, z = launch.grid
    if x is not None and y is not None and z is not None and x * y * z < FEWEST_BLOCKS:
        raise NoMatchError(
            f"Nothing to gain: the grid at {launch.source} has {x * y * z} blocks, and {count} times fewer would leave "
            "multiprocessors idle."
        )


def _loop(source: Source, block: Node, statements: list[Node], way: _ByGrid | _ByBlock) -> TextEdit:
    start, end = statements[0].start_byte, statements[-1].end_byte
    counter, unit = free_name(source.code_text(), "e"), indent_unit(source, block)
    new = way.replaced(counter)
    old = source.line_indent(start)
    inner, at = "", start
    for node in (n for s in statements for n in descendants(s, "field_expression", "return_statement")):
        returns = node.type == "return_statement"
        text = squeezed(source.node_code(node))
        if returns or text in new:
            inner += source.text(at, node.start_byte)
            inner += "continue;" if returns else new[text]
            at = node.end_byte
    inner = reindented(inner + source.text(at, end), old, old + unit)
    head = f"#pragma unroll\n{old}for (int {counter} = 0; {counter} < {way.count}; {counter}++) {{\n{old}{unit}"
    return TextEdit(start, end, f"{head}{inner}\n{old}}}")
