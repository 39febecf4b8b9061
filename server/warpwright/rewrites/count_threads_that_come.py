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
- The count is written as a number: in the assembly, or in all calls of functions that have it.

## Cost

None.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import WARP, Kernel, MissedWait
from warpwright.rewrites._code import body_of, functions_of, overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Span

NAME = "count-threads-that-come"
title = "Count the threads that come"
goals = ("fix",)
relies_on = ()

_OPERANDS = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+%")
_BARRIER = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+(\d+)\s*,\s*(\d+)\s*;")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    reason = "No barrier here is known to wait for more threads than come."
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
    """The count in each assembly of the barrier with that number; or in each call of a function that has it."""
    source, text = kernel.source, kernel.source.text(wait.span.start, wait.span.end)
    written = _BARRIER.search(text)
    if written is not None:
        whole = source.text(kernel.span.start, kernel.span.end)
        found = [each for each in _BARRIER.finditer(whole) if each[1] == written[1] and int(each[2]) == wait.wanted]
        starts = [kernel.span.start + len(encoded(whole[: each.start(2)])) for each in found]
        return tuple(TextEdit(at, at + len(str(wait.wanted)), str(wait.came)) for at in starts)
    calls = [call for call in descendants(body_of(kernel), "call_expression") if _has_barrier(kernel, call)]
    numbers = [list(descendants(call, "number_literal")) for call in calls]
    texts = [[source.node_code(each).rstrip("uU") for each in of_call] for of_call in numbers]
    if not texts or any(each != texts[0] for each in texts) or texts[0].count(str(wait.wanted)) != 1:
        return ()
    counts = [of_call[texts[0].index(str(wait.wanted))] for of_call in numbers]
    return tuple(TextEdit(each.start_byte, each.end_byte, str(wait.came)) for each in counts)


def _has_barrier(kernel: Kernel, call: Node) -> bool:
    """Whether a call is of a function of the file that has the barrier in its assembly."""
    called = functions_of(kernel.source).get(called_name(call, kernel.source), [])
    return any(_OPERANDS.search(kernel.source.node_text(each)) for each in called)
