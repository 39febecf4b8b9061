"""Let each thread of a tiled matrix product compute several elements, in registers.

## Before

```cuda
#define TILE 16

__global__ void matmul(float *c, const float *a, const float *b, int n) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < n; start += TILE) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * n + start + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

void run(float *c, const float *a, const float *b) {
  dim3 block(TILE, TILE);
  matmul<<<dim3(32 / TILE, 32 / TILE), block>>>(c, a, b, 32);
}
```

## After

```cuda
#define TILE 16

__global__ void matmul(float *c, const float *a, const float *b, int n) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int column = blockIdx.x * TILE + threadIdx.x;
  float sum[2] = {0.0f, 0.0f};
  for (int start = 0; start < n; start += TILE) {
    #pragma unroll
    for (int r = 0; r < 2; r++) {
      a_tile[threadIdx.y + 8 * r][threadIdx.x] = a[(row + 8 * r) * n + start + threadIdx.x];
      b_tile[threadIdx.y + 8 * r][threadIdx.x] = b[(start + (threadIdx.y + 8 * r)) * n + column];
    }
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      for (int r = 0; r < 2; r++)
        sum[r] += a_tile[threadIdx.y + 8 * r][k] * b_tile[k][threadIdx.x];
    __syncthreads();
  }
  #pragma unroll
  for (int r = 0; r < 2; r++)
    c[(row + 8 * r) * n + column] = sum[r];
}

void run(float *c, const float *a, const float *b) {
  dim3 block(TILE, TILE);
  matmul<<<dim3(32 / TILE, 32 / TILE), dim3(block.x, block.y / 2)>>>(c, a, b, 32);
}
```

## Assumes

- Every launch is in this file, with one block of two dimensions, whose y extent is 16 or 32. It becomes a half of 16 or
  a quarter of 32, and the grid stays.
- The kernel sets variables, then has one loop at its outermost level that adds to variables of the thread, then stores.
  Rows differ from thread to thread in y by a fixed number. No thread leaves before the loop.
- The threads of a warp do not exchange values, and nothing but `__syncthreads` orders them.

## Cost

Registers for the further sums, and fewer threads: 2 or 4 times less parallelism to hide latency with. Each element is
summed up in the same order, so the result is the same bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, host_launches, macros_naming, matched, overlaps
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._launch_shape import block_divided
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import free_name, indent_unit, line_of
from warpwright.rewrites._locals import is_template_type
from warpwright.rewrites._loops import pragmas_before
from warpwright.rewrites._movable import block_by_directive, movable_body
from warpwright.rewrites._several import Copies, Varying, repeated, steps_of, varying_names
from warpwright.rewrites._threads import unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "tile-in-registers"
title = "Register tiling: several elements per thread"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART)

ELEMENTS = {16: 2, 32: 4}
"""Elements of each thread by the block's extent in y: what leaves 128 and 256 threads of square blocks."""

_LOOPS = ("for_statement", "while_statement")
_BARRIER = "__syncthreads"
_EXCHANGE = re.compile(r"\b(?:__shfl\w*|__ballot\w*|__any\w*|__all\w*|__match\w*|__reduce\w*|__syncwarp|warpSize|cg|"
                       r"cooperative_groups|wmma|atomic\w*|__syncthreads_\w+)\b")  # fmt: skip


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    source = kernel.source
    loops = [n for n in block.named_children if n.type in _LOOPS and (at is None or overlaps(source.span(n), at))]
    shape = block_of_all_launches(kernel)
    indices = indices_of(kernel, None if isinstance(shape, str) else shape)
    memory = frozenset(a.name for a in kernel.shared_arrays) | {p.name for p in kernel.parameters if p.is_pointer}
    names = varying_names(source, block, memory)
    reason = (
        "No loop at the kernel's outermost level adds up products of one factor that depends on threadIdx.y and one "
        "that does not."
    )
    for loop in loops:
        sums = _sums(source, block, loop, indices, names)
        if not sums:
            continue
        if isinstance(shape, str):
            return Declined(NAME, shape)
        if by_directive := block_by_directive(kernel):
            return Declined(NAME, by_directive)
        count = ELEMENTS.get(shape[1], 0)
        if not count or shape[0] < 2 or shape[2] != 1:
            return Declined(NAME, f"The block is {shape[0]} x {shape[1]} x {shape[2]}, and 16 or 32 in y are halved.")
        varying = Varying(names, steps_of(indices, names), sums)
        return _rewrite(kernel, block, loop, varying, shape[1] // count, count)
    return Declined(NAME, reason)


def _sums(source: Source, block: Node, loop: Node, indices: Indices, names: frozenset[str]) -> frozenset[str]:
    """Variables that the loop adds products to, one factor of which is the same for every threadIdx.y."""
    found: set[str] = set()
    for assignment in descendants(loop, "assignment_expression"):
        target, value = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
        name = source.node_text(target) if target is not None and target.type == "identifier" else ""
        if value is None or name not in names or name not in indices.variables.types:
            continue
        operator = assignment.child_by_field_name("operator")
        again = operator is not None and operator.type == "="
        if operator is None or (
            operator.type != "+=" and not re.search(rf"\b{name}\b", source.node_code(value) * again)
        ):
            continue
        loads = [n for n in descendants(value, "subscript_expression") if _is_whole(n)]
        varying = Varying(names, {}, frozenset())
        kinds = {varying.touches(source, load) for load in loads}
        if kinds == {True, False}:
            found.add(name)
    return frozenset(found)


def _is_whole(element: Node) -> bool:
    """Not the row of an element of a matrix: `a[i][j]`, and not `a[i]` in it."""
    parent = element.parent
    return parent is None or parent.type != "subscript_expression" or parent.child_by_field_name("argument") != element


def _rewrite(kernel: Kernel, block: Node, loop: Node, varying: Varying, apart: int, count: int) -> Rewrite:
    source = kernel.source
    _require_plain(kernel, block)
    counter, unit = free_name(source.code_text(), "r"), indent_unit(source, block)
    children = [c for c in block.named_children if c.type != "comment"]
    place = children.index(loop)
    edits = _head_edits(source, children[:place], varying, count)

    def repeat(statements: list[Node]) -> TextEdit:
        text = repeated(source, statements, varying, Copies(counter, apart, count), unit)
        start = statements[0].start_byte
        while text.startswith("\n") and source.data[start - 1 : start] in (b" ", b"\t"):
            start -= 1
        return TextEdit(start, statements[-1].end_byte, text)

    edits += _loop_edits(source, loop, varying, repeat)
    tail = children[place + 1 :]
    for statement in tail:
        _require_tail(source, statement)
    _require_own(source, tail, varying)
    edits += [repeat(tail)] if tail else []
    for launch in host_launches(kernel):
        divided = matched(block_divided(kernel, launch, "y", count))
        edits.append(divided)
    rewritten = [(e.start, e.end) for e in edits]
    for use in descendants(block, "field_expression"):
        inside = any(start <= use.start_byte < end for start, end in rewritten)
        if re.fullmatch(r"blockDim\s*\.\s*y", source.node_code(use)):
            if inside:
                raise NoMatchError(
                    f"blockDim.y is used at line {line_of(source, use)}, where it would have another value."
                )
            edits.append(TextEdit(use.start_byte, use.end_byte, f"({source.node_text(use)} * {count})"))
    sums = " and ".join(sorted(varying.sums))
    return Rewrite(
        NAME,
        f"Compute {count} elements per thread",
        source,
        tuple(edits),
        f"For each product a thread read both of its factors for one element of {sums}. Now it computes {count} "
        f"elements that have one factor in common, which it reads once: {count + 1} reads for {count} products instead "
        f"of {2 * count}. The block has {count} times fewer threads, and each holds {count} sums in registers.",
    )


def _require_plain(kernel: Kernel, block: Node) -> None:
    source = kernel.source
    text = source.node_code(block)
    if found := _EXCHANGE.search(text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}`, which depends on which threads there are.")
    for macro in macros_naming(source, re.compile(r"\b(?:threadIdx|blockDim)\b")):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"{kernel.name} uses the macro {macro}, which reads the thread's index.")
    for use in descendants(block, "identifier"):
        whole = use.parent is None or use.parent.type != "field_expression"
        if source.node_text(use) in ("threadIdx", "blockDim") and whole:
            raise NoMatchError(f"`{source.node_text(use)}` is used as a whole at line {line_of(source, use)}.")
    for call in descendants(block, "call_expression"):
        name = called_name(call, source)
        if name != _BARRIER and not is_template_type(kernel, name) and (reason := unfit_call(kernel, call)):
            raise NoMatchError(reason)


def _head_edits(source: Source, head: list[Node], varying: Varying, count: int) -> list[TextEdit]:
    """The sums as arrays; before the loop nothing else may depend on threadIdx.y than variables that step with it."""
    edits: list[TextEdit] = []
    found: set[str] = set()
    for statement in head:
        line = line_of(source, statement)
        if any(True for _ in descendants(statement, "return_statement")):
            raise NoMatchError(f"Threads may leave at line {line}, before the loop.")
        touched = varying.touches(source, statement)
        if touched and statement.type != "declaration":
            raise NoMatchError(f"Line {line} depends on threadIdx.y, and does more than declare a variable.")
        for declarator in statement.children_by_field_name("declarator") if touched else []:
            name, value = declared_name(source, declarator), declarator.child_by_field_name("value")
            if name in varying.sums:
                if value is None or declarator.type != "init_declarator" or varying.touches(source, value):
                    raise NoMatchError(f"`{name}` has no initial value that is the same for every threadIdx.y.")
                written = source.node_text(value)
                edits.append(
                    TextEdit(
                        declarator.start_byte,
                        declarator.end_byte,
                        f"{name}[{count}] = {{{', '.join([written] * count)}}}",
                    )
                )
                found.add(name)
            elif name not in varying.steps and varying.touches(source, declarator):
                raise NoMatchError(f"`{name}` at line {line} depends on threadIdx.y by more than a step.")
    if missing := varying.sums - found:
        raise NoMatchError(f"`{min(missing)}` is not declared before the loop at the kernel's outermost level.")
    return edits


def _loop_edits(
    source: Source, loop: Node, varying: Varying, repeat: Callable[[list[Node]], TextEdit]
) -> list[TextEdit]:
    """Each stretch of the loop's statements that depends on threadIdx.y, between barriers, once for each element."""
    inner = loop.child_by_field_name("body")
    for part in loop.children:
        if part != inner and varying.touches(source, part):
            raise NoMatchError(f"How often the loop at line {line_of(source, loop)} runs depends on threadIdx.y.")
    for jump in descendants(loop, "return_statement", "break_statement", "continue_statement"):
        raise NoMatchError(f"The loop may be left at line {line_of(source, jump)}.")
    if inner is None:
        return []
    edits: list[TextEdit] = []
    group: list[Node] = []
    for statement in uncommented(inner) if inner.type == "compound_statement" else [inner]:
        own_sums = any(source.node_text(n) in varying.sums for n in descendants(statement, "identifier"))
        steps = statement.type == "declaration" and _steps_only(source, statement, varying)
        if not varying.touches(source, statement) or steps or (statement.type in _LOOPS and own_sums):
            edits += [repeat(group)] if group else []
            group = []
            if statement.type in _LOOPS and own_sums:
                edits += _loop_edits(source, statement, varying, repeat)
            continue
        if any(called_name(call, source) == _BARRIER for call in descendants(statement, "call_expression")):
            raise NoMatchError(
                f"A barrier at line {line_of(source, statement)} stands under what depends on threadIdx.y."
            )
        if pragmas_before(source, statement):
            raise NoMatchError(f"A directive stands before line {line_of(source, statement)}, which is to be repeated.")
        group.append(statement)
    return edits + ([repeat(group)] if group else [])


def _steps_only(source: Source, declaration: Node, varying: Varying) -> bool:
    """Whether all that a declaration declares is the same for every threadIdx.y or steps with it."""
    names = [declared_name(source, d) for d in declaration.children_by_field_name("declarator")]
    return all(name in varying.steps or name not in varying.names for name in names)


def _require_tail(source: Source, statement: Node) -> None:
    for leave in descendants(statement, "return_statement"):
        if uncommented(leave) or any(n.type in (*_LOOPS, "do_statement", "switch_statement") for n in ancestors(leave)):
            raise NoMatchError(f"Threads may leave a loop at line {line_of(source, leave)}.")
    for call in descendants(statement, "call_expression"):
        if called_name(call, source) == _BARRIER:
            raise NoMatchError(f"A barrier stands after the loop, at line {line_of(source, call)}.")


def _require_own(source: Source, tail: list[Node], varying: Varying) -> None:
    """What runs once for each element behind the loop changes no variable that is not the element's own."""
    own = varying.sums | {declared_name(source, d) for s in tail for d in descendants(s, "init_declarator")}
    for statement in tail:
        for change in descendants(statement, "assignment_expression", "update_expression"):
            target = change.child_by_field_name("left") or change.child_by_field_name("argument")
            if target is not None and target.type == "identifier" and source.node_text(target) not in own:
                raise NoMatchError(
                    f"`{source.node_text(target)}` changes after the loop, at line {line_of(source, change)}."
                )
