"""Let a named barrier count the threads that come to it.

## Before

```cuda
__global__ void halves(int *out, const int *in) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  if (t < 64) {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[t] = s[63 - t];
  }
}

void run(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&in, 128 * sizeof(int));
  cudaMemcpy(in, host, 128 * sizeof(int), cudaMemcpyHostToDevice);
  halves<<<1, 128>>>(out, in);
}
```

## After

```cuda
__global__ void halves(int *out, const int *in) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  if (t < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[63 - t];
  }
}

void run(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&in, 128 * sizeof(int));
  cudaMemcpy(in, host, 128 * sizeof(int), cudaMemcpyHostToDevice);
  halves<<<1, 128>>>(out, in);
}
```

## Assumes

- All launches have blocks of one size, and the threads that come are those that are meant: whole warps.
- The count is written as a number: in the assembly, or once in a call of the function that has it.

## Cost

None.
"""

from __future__ import annotations

import re

from warpwright.facts.model import WARP, Kernel, MissedWait
from warpwright.rewrites._code import overlaps
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, node_at
from warpwright.syntax.source import Span

NAME = "count-threads-that-come"
title = "Count the threads that come"
goals = ("fix",)
relies_on = ()

_BARRIER = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+(\d+)\s*,\s*(\d+)\s*;")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    reason = "No barrier here is known to wait for more threads than come."
    if unmoved := unmovable(kernel):
        return Declined(NAME, unmoved)
    for wait in kernel.missed_waits:
        if not wait.wanted or wait.span.source is not kernel.source or (at is not None and not overlaps(wait.span, at)):
            continue
        edits = _edits(kernel, wait)
        if wait.came % WARP or len({launch.block for launch in kernel.launches}) != 1:
            reason = f"{wait.came} threads come to the barrier, which are not whole warps of every launch."
        elif edits:
            return Rewrite(
                rewrite=NAME,
                title=title,
                source=kernel.source,
                edits=edits,
                explanation=(
                    f"The barrier opens when {wait.wanted} threads have come, and {wait.came} come. It counts them now."
                ),
            )
        else:
            reason = f"The {wait.wanted} threads that the barrier waits for are not written there as a number."
    return Declined(NAME, reason)


def _edits(kernel: Kernel, wait: MissedWait) -> tuple[TextEdit, ...]:
    """The count in each assembly of the barrier with that number, or the one number in a call."""
    source, text = kernel.source, kernel.source.text(wait.span.start, wait.span.end)
    written = _BARRIER.search(text)
    if written is not None:
        whole = source.text(kernel.span.start, kernel.span.end)
        found = [each for each in _BARRIER.finditer(whole) if each[1] == written[1] and int(each[2]) == wait.wanted]
        starts = [kernel.span.start + len(whole[: each.start(2)].encode()) for each in found]
        return tuple(TextEdit(at, at + len(str(wait.wanted)), str(wait.came)) for at in starts)
    node = node_at(source.root, wait.span.start, wait.span.end)
    call = next((each for each in [node, *ancestors(node)] if each.type == "call_expression"), None) if node else None
    numbers = [
        each
        for each in descendants(call, "number_literal")
        if source.node_code(each).rstrip("uU") == str(wait.wanted)
    ] if call is not None else []  # fmt: skip
    return (TextEdit(numbers[0].start_byte, numbers[0].end_byte, str(wait.came)),) if len(numbers) == 1 else ()
