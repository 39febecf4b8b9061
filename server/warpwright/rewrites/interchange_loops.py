"""Let consecutive threads take consecutive elements, where each walks over a chunk of its own.

## Before

```cuda
constexpr int CHUNK = 8;

__global__ void scale(float *out, const float *in, float factor, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * CHUNK;
  for (int k = 0; k < CHUNK; k++) {
    int i = first + k;
    if (i < n)
      out[i] = factor * in[i];
  }
}

void run(float *out, const float *in, int n) {
  scale<<<(n + 1023) / 1024, 128>>>(out, in, 2.0f, n);
}
```

## After

```cuda
constexpr int CHUNK = 8;

__global__ void scale(float *out, const float *in, float factor, int n) {
  int first = blockIdx.x * blockDim.x * CHUNK + threadIdx.x;
  for (int k = 0; k < CHUNK; k++) {
    int i = first + k * blockDim.x;
    if (i < n)
      out[i] = factor * in[i];
  }
}

void run(float *out, const float *in, int n) {
  scale<<<(n + 1023) / 1024, 128>>>(out, in, 2.0f, n);
}
```

A block works on the chunks of its threads as before, each thread on elements that lie a block's width apart. A loop
`for (int i = start; i < start + CHUNK && i < n; i++)` steps by `blockDim.x` then, up to `start + CHUNK * blockDim.x`.

## Assumes

- Each iteration works on its element alone: what it stores, it stores at the element's place, and what it loads is
  stored by no other iteration. Sums over a chunk are refused: each thread would add other elements.
- Every thread of the block walks over a chunk of one size: no condition on the thread stands around the loop or lets it
  leave before.
- What other parts of the kernel store or load of the same arrays lies beyond a barrier.
- Arrays that are handed to different parameters do not overlap, and indices have room for a block's chunks more.

## Cost

None: the two loops, over the threads of a block and over a chunk, change places. Results stay the same bit for bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.aliasing import loop_around
from warpwright.facts.model import Access, Kernel, Space
from warpwright.rewrites._by_element import require_by_element
from warpwright.rewrites._chunks import chunk_of, side_by_side
from warpwright.rewrites._code import NoMatchError, body, by_cost, overlaps
from warpwright.rewrites._gain import no_fewer_sectors
from warpwright.rewrites._indices import indices_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._names import deciding, reached_names
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source, Span

NAME = "interchange-loops"
title = "Interchange the loops: coalesced accesses"
goals = ("speed",)
relies_on = (Reliance.APART, Reliance.SIZES)

STRIDED = 2.0
"""Sectors for each one needed from which the order of the loops matters."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    walks = [a for a in kernel.accesses if a.space is Space.GLOBAL and (a.excess or 0.0) >= STRIDED and a.in_loop]
    chosen = [a for a in by_cost(walks) if a.loop_step == a.bytes and (at is None or overlaps(a.span, at))]
    refusal = Declined(NAME, "No loop here is known to walk over a chunk of its own in each thread.")
    edits: dict[tuple[int, int], TextEdit] = {}
    done: list[Access] = []
    for place, access in enumerate(chosen):
        try:
            edits |= {(edit.start, edit.end): edit for edit in _interchanged(kernel, access)}
            done.append(access)
        except NoMatchError as refused:
            refusal = Declined(NAME, str(refused)) if place == 0 else refusal
    if not done:
        return refusal
    if reason := no_fewer_sectors(kernel, list(edits.values())):
        return Declined(NAME, reason)
    got, ideal = done[0].sectors_per_request or 0.0, done[0].ideal_sectors_per_request or 0.0
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=tuple(edits.values()),
        explanation=(
            f"Each thread walked over elements of its own, so that the lanes of a warp were a chunk apart: {got:g} "
            f"sectors per request of {done[0].array} (ideal {ideal:g}). Now a thread goes on by as many "
            "elements as its block has threads, and the lanes of a warp use neighbours. Every element is worked on "
            "once, as before, and by the same block."
        ),
    )


def _interchanged(kernel: Kernel, access: Access) -> list[TextEdit]:
    source, block = kernel.source, body(kernel)
    node = loop_around(access.span) if access.span.source is source else None
    if node is None or block is None or node.type != "for_statement":
        raise NoMatchError(f"The loop around `{access.expression}` does not count up by one.")
    chunk = chunk_of(indices_of(kernel, None), node)
    _require_all_threads(source, block, node)
    require_by_element(chunk)
    return side_by_side(chunk)


def _require_all_threads(source: Source, block: Node, loop: Node) -> None:
    """All threads of a block come to the loop, or none."""
    for around in ancestors(loop):
        if around == block:
            break
        if around.type != "compound_statement":
            line = source.position(around.start_byte)[0]
            raise NoMatchError(
                f"The loop stands within the statement at line {line}, so not all threads may come there."
            )
    for leave in descendants(block, "return_statement"):
        conditions = list(deciding(leave, block))
        of_thread = any("threadIdx" in reached_names(block, source, condition) for condition in conditions)
        if leave.start_byte < loop.start_byte and (of_thread or not conditions):
            raise NoMatchError(f"Threads may leave at line {source.position(leave.start_byte)[0]}.")
