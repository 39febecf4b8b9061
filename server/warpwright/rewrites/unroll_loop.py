"""Unroll a loop that strides by the size of the block, so that the loads of several steps are issued together.

## Before

```cuda
__global__ void row_sums(float *sums, const float *x, int columns) {
  const float *row = x + blockIdx.x * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    sum += row[i];
  atomicAdd(&sums[blockIdx.x], sum);
}

void run(float *sums, const float *x, int rows, int columns) {
  row_sums<<<rows, 128>>>(sums, x, columns);
}
```

## After

```cuda
__global__ void row_sums(float *sums, const float *x, int columns) {
  const float *row = x + blockIdx.x * columns;
  float sum = 0.0f;
  #pragma unroll 4
  for (int i = threadIdx.x; i < columns; i += 128)
    sum += row[i];
  atomicAdd(&sums[blockIdx.x], sum);
}

void run(float *sums, const float *x, int rows, int columns) {
  row_sums<<<rows, 128>>>(sums, x, columns);
}
```

nvcc unrolls a loop with a step that it knows by itself. With a step of blockDim.x it does not, and `#pragma unroll`
alone does not help: it tests after each step whether the loop ends, and no load is issued before that test (read from
nvcc's machine code, CUDA 13.0, sm_80 and sm_90).

## Assumes

- Every launch is found, with a block of one shape, and the step of the loop follows from it.
- The loop counts in signed numbers, which nvcc takes not to wrap around: only then it knows the steps ahead.
- The loop only ends by its condition, has no loop inside, no barrier and no atomic, and loads global memory that its
  stores cannot change.

## Cost

Registers for the elements that are on their way. The order of the operations stays, so results are the same bit for
bit. The block has to keep its shape.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.aliasing import changes, inside, is_plain_load, restricted
from warpwright.facts.model import Access, Basis, Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, matched, overlaps
from warpwright.rewrites._indices import Indices, constant_named, indices_of
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._loops import CountedLoop, counted_loop, pragmas_before
from warpwright.rewrites._movable import block_by_directive, movable_body
from warpwright.rewrites._threads import unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, launch_configuration, node_at
from warpwright.syntax.source import Source, Span

NAME = "unroll-loop"
title = "Unroll the loop"
goals = ("speed",)
relies_on = (Reliance.BLOCK,)

STEPS = 4


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    source = kernel.source
    unknown = indices_of(kernel, None)
    reason = "No loop here has a step that only the launch decides."
    for node in descendants(block, "for_statement"):
        loop = counted_loop(source, node)
        step = unknown.read(loop.step) if loop is not None and loop.step is not None else None
        here = at is None or overlaps(source.span(node), at)
        if loop is None or step is None or not here or not any("blockDim" in name for p in step for name in p):
            continue
        try:
            _require_independent(kernel, loop)
            return _rewrite(kernel, block, loop)
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, loop: CountedLoop) -> Rewrite:
    source, line = kernel.source, line_of(kernel.source, loop.node)
    shape = matched(block_of_all_launches(kernel))
    indices = indices_of(kernel, shape)
    step = indices.number(loop.step)
    if step is None or step < 1 or loop.step is None:
        raise NoMatchError(f"The step of the loop at line {line} depends on more than the block.")
    if not _is_signed(source, indices, loop):
        raise NoMatchError(
            f"Nothing to gain: the loop at line {line} counts in unsigned numbers, which may wrap around, so that the "
            "compiler tests after each step whether it ends."
        )
    bound = indices.number(loop.bound)
    if bound is not None and bound < STEPS * step:
        raise NoMatchError(f"Nothing to gain: the loop at line {line} has {-(-bound // step)} steps.")
    if pragmas_before(source, loop.node):
        raise NoMatchError(f"A directive stands before the loop at line {line}.")
    indent = source.line_indent(loop.node.start_byte)
    if source.text(0, loop.node.start_byte).rpartition("\n")[2].strip():
        raise NoMatchError(f"The loop at line {line} does not begin its line, where a directive could stand.")
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        raise NoMatchError(f"The loop at line {line} is the body of another statement without braces.")
    name = _named(kernel, indices, block, step)
    if name.isdigit() and (reason := block_by_directive(kernel)):
        raise NoMatchError(reason)
    return Rewrite(
        NAME,
        title,
        source,
        (
            TextEdit(loop.node.start_byte, loop.node.start_byte, f"#pragma unroll {STEPS}\n{indent}"),
            TextEdit(loop.step.start_byte, loop.step.end_byte, name),
        ),
        f"The compiler does not know that {source.node_text(loop.step)} is {step}, so it loads for one step of the "
        "loop, waits, and tests whether there is another. With the number in the text it issues the loads of "
        f"{STEPS} steps together. It costs registers, and the block has to keep its shape.",
    )


def _require_independent(kernel: Kernel, loop: CountedLoop) -> None:
    """The loads of one step need not wait for anything of the step before."""
    source, node, line = kernel.source, loop.node, line_of(kernel.source, loop.node)
    for inner in descendants(loop.body, *LOOPS):
        raise NoMatchError(f"The loop at line {line} has a loop inside, at line {line_of(source, inner)}.")
    for jump in descendants(node, "break_statement", "return_statement"):
        raise NoMatchError(f"The loop may be left at line {line_of(source, jump)}.")
    for call in descendants(node, "call_expression"):
        name = called_name(call, source)
        if re.match(r"__sync|atomic|__shfl|__ballot|__any|__all|sync$", name):
            raise NoMatchError(f"The loop calls {name} at line {line_of(source, call)}, which orders its steps.")
        if reason := unfit_call(kernel, call):
            raise NoMatchError(reason)
    for change in descendants(loop.body, "assignment_expression", "update_expression"):
        target = change.child_by_field_name("left") or change.child_by_field_name("argument")
        if target is not None and source.node_text(target) == loop.name:
            raise NoMatchError(f"`{loop.name}` changes at line {line_of(source, change)}.")
    here = [a for a in kernel.accesses if inside(a, kernel.span, node) and a.span.source is source]
    loads = [a for a in here if is_plain_load(a) and a.by_thread]
    if not loads:
        raise NoMatchError(f"Nothing to gain: the loop at line {line} loads no global memory of its own.")
    for store in (a for a in here if changes(a)):
        if any(_may_be(kernel, load, store) for load in loads):
            raise NoMatchError(f"Nothing to gain: the store to {store.array} may alias what the next step loads.")
    if all(a.basis is Basis.EXACT and a.iterations < STEPS for a in loads):
        raise NoMatchError(f"Nothing to gain: the loop at line {line} has {loads[0].iterations:g} steps.")


def _is_signed(source: Source, indices: Indices, loop: CountedLoop) -> bool:
    """Whether the loop's condition compares signed numbers."""
    words = {source.node_text(use) for use in descendants(loop.bound, "identifier")}
    types = [loop.type, *(indices.variables.types.get(word, "int") for word in words)]
    known = [builtin_type(text) for text in types]
    plain = not any(
        True for _ in descendants(loop.bound, "call_expression", "field_expression", "subscript_expression")
    )
    literal = re.search(r"\d[uU]", source.node_code(loop.bound))
    return plain and literal is None and all(kind is not None and kind.kind == "int" for kind in known)


def _may_be(kernel: Kernel, load: Access, store: Access) -> bool:
    return load.array == store.array or not {load.array, store.array} & restricted(kernel)


def _named(kernel: Kernel, indices: Indices, block: Node, step: int) -> str:
    """The step as a constant that the kernel or a launch names, else as the number."""
    source: Source = kernel.source
    names = [source.node_text(use) for use in descendants(block, "identifier")]
    for launch in kernel.launches:
        node = node_at(source.root, launch.span.start, launch.span.end) if launch.span is not None else None
        shape = launch_configuration(node) if node is not None else None
        names += [source.node_text(use) for use in descendants(shape, "identifier")] if shape is not None else []
    return constant_named(indices, block, names, step) or str(step)
