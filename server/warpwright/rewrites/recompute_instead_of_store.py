"""Keep a value in a register instead of a shared array of which each thread uses its own element alone.

## Before

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  __shared__ float own[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  own[threadIdx.x] = i < n ? in[i] : 0.0f;
  window[threadIdx.x] = own[threadIdx.x];
  __syncthreads();
  float left = threadIdx.x > 0 ? window[threadIdx.x - 1] : own[threadIdx.x];
  if (i < n)
    out[i] = 0.5f * (left + own[threadIdx.x]);
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## After

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  float own;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  own = i < n ? in[i] : 0.0f;
  window[threadIdx.x] = own;
  __syncthreads();
  float left = threadIdx.x > 0 ? window[threadIdx.x - 1] : own;
  if (i < n)
    out[i] = 0.5f * (left + own);
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Assumes

- The array is a static `__shared__` array that is declared at the top of the kernel and only used by its elements: no
  address, not even an atomic's.
- Every use has the same index, of the thread's index and constants alone, and it is another one for each thread of the
  blocks that are launched: what a thread reads is what it wrote itself.

## Cost

A register for as long as the value lives. Barriers stay where they are; those that only this array seemed to need can
go. Results stay the same bit for bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.lifts import size_words
from warpwright.facts.model import Kernel, SharedArray
from warpwright.rewrites._arrays import declarator_of, element_uses, indices_of, misuse
from warpwright.rewrites._code import body, in_macro, overlaps
from warpwright.rewrites._launched import launched_blocks
from warpwright.rewrites._thread_indices import Indices, threads_of
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import enclosing
from warpwright.syntax.source import Source, Span

NAME = "recompute-instead-of-store"
title = "Keep the value in a register"
goals = ("memory", "speed")
relies_on = (Reliance.BLOCK,)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    arrays = [a for a in kernel.shared_arrays if not a.dynamic and a.dims]
    if at is not None:
        touched = {a.array for a in kernel.accesses if overlaps(a.span, at)}
        arrays = [a for a in arrays if a.name in touched or overlaps(a.span, at)]
    if not arrays:
        return Declined(NAME, f"{kernel.name} has no static shared array here.")
    results = [_kept(kernel, array) for array in sorted(arrays, key=lambda a: a.bytes or 0, reverse=True)]
    return next((result for result in results if isinstance(result, Rewrite)), results[0])


def _kept(kernel: Kernel, array: SharedArray) -> Rewrite | Declined:
    block, source, name = body(kernel), kernel.source, array.name
    declarator = declarator_of(block, source, name) if block is not None else None
    declaration = enclosing(declarator, "declaration") if declarator is not None else None
    if block is None or declarator is None or declaration is None or declaration.parent != block or not array.bytes:
        return Declined(NAME, f"`{name}` is not declared at the top of {kernel.name}, or its size is not known.")
    if reason := misuse(block, source, name, len(array.dims), declarator):
        return Declined(NAME, reason)
    if len(declaration.children_by_field_name("declarator")) > 1 or in_macro(declaration):
        return Declined(NAME, f"`{name}` is declared together with other variables.")
    uses = element_uses(block, source, name, declarator)
    if reason := _unfit(source, declaration, uses, name) or _shared_with_others(kernel, block, uses, name):
        return Declined(NAME, reason)
    kind = declaration.child_by_field_name("type")
    written = source.node_text(kind) if kind is not None else array.element_type
    edits = [TextEdit(declaration.start_byte, declaration.end_byte, f"{written} {name};")]
    edits += [TextEdit(use.start_byte, use.end_byte, name) for use in uses]
    return Rewrite(
        rewrite=NAME,
        title=f"Keep {name} in a register",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Every thread uses its own element of {name} alone, so nothing is shared. In a register the value costs "
            "no "
            f"load, no store and none of the {size_words(array.bytes)} that each block holds now. A barrier that only "
            f"{name} seemed to need can go."
        ),
    )


def _unfit(source: Source, declaration: Node, uses: list[Node], name: str) -> str:
    """Why a register cannot stand for the elements; empty where it can."""
    if "volatile" in source.node_code(declaration):
        return f"`{name}` is volatile."
    if not uses:
        return f"`{name}` is not used."
    for use in uses:
        line = source.position(use.start_byte)[0]
        outer = use.parent
        while outer is not None and outer.type in ("parenthesized_expression", "field_expression"):
            outer = outer.parent
        if outer is not None and outer.type == "pointer_expression":
            return f"The address of an element of `{name}` is taken at line {line}."
        if enclosing(use, "lambda_expression") is not None:
            return f"`{name}` is used in a lambda at line {line}, which would capture the register."
        if in_macro(use):
            return f"`{name}` is used in a macro."
    return ""


def _shared_with_others(kernel: Kernel, block: Node, uses: list[Node], name: str) -> str:
    """Why another thread may use an element; empty where each thread has one of its own."""
    shapes = launched_blocks(kernel)
    if isinstance(shapes, str):
        return shapes
    indices, source = Indices(block, kernel.source), kernel.source
    different = {tuple(source.node_text(index) for index in indices_of(use)): use for use in uses}.values()
    for shape in shapes:
        owner: dict[tuple[int, ...], int] = {}
        for number, thread in enumerate(threads_of(shape)):
            own: tuple[int, ...] | None = None
            for use in different:
                values = [indices.value(index, thread, shape) for index in indices_of(use)]
                at = tuple(value for value in values if value is not None)
                text, line = source.node_text(use), source.position(use.start_byte)[0]
                if len(at) < len(values):
                    return f"`{text}` at line {line} is not known to be the thread's own element."
                if owner.setdefault(at, number) != number or own not in (None, at):
                    return f"`{text}` at line {line} is not the one element of its thread."
                own = at
    return ""
