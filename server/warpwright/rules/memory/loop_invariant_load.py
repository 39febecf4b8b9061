"""A loop loads the same address of global memory again at every iteration.

## Why is this bad?

A compiler moves a load out of a loop where nothing in the loop can change what it loads. A store through another
pointer can, as far as nvcc knows: the two may overlap, whatever they point to. So can other threads, where the loop has
a barrier. The load is then issued at every iteration, and the iterations wait for it and for the store before it.

A sum that is kept in global memory, as in `c[i] += a[k]`, is stored at every iteration for the same reason.

## Example

```cuda
__global__ void normalize(float *out, const float *in, const float *scale, int columns) {
  int row = blockIdx.x;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[row * columns + i] = in[row * columns + i] * scale[row];
  }
}

void run(float *out, const float *in, const float *scale, int rows, int columns) {
  normalize<<<rows, 256>>>(out, in, scale, columns);
}
```

## Use instead

A variable of the thread, which no store through a pointer can change:

```cuda
__global__ void normalize(float *out, const float *in, const float *scale, int columns) {
  int row = blockIdx.x;
  const auto scale_value = scale[row];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[row * columns + i] = in[row * columns + i] * scale_value;
  }
}

void run(float *out, const float *in, const float *scale, int rows, int columns) {
  normalize<<<rows, 256>>>(out, in, scale, columns);
}
```

## Limits

- Only a load whose address is seen to stay in all lanes is found, and only where the loop's own text has the store or
  barrier that keeps the compiler from moving it; `__restrict__` on either pointer lets it.
- An array that the kernel changes elsewhere, or by atomic operations, is left alone: another thread's result may be
  waited for. Where the loop itself stores to the address that it loads, the finding asks for a local variable that
  takes the intermediate results.
- One finding for each array that a loop loads from so. A loop of few iterations is a hint.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.aliasing import changes, has_volatile, inside, is_plain_load, loop_around, restricted, varies
from warpwright.facts.model import Access, AccessKind, Kernel
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.gains import without_repeats
from warpwright.rules.weighing import COUNTED, worst_by_place
from warpwright.rules.words import code, launch_of, launch_related
from warpwright.syntax.nodes import descendants

severity = Severity.INFORMATION

FEW = 8.0
"""Iterations below which a repeated load costs little."""

HOIST = Fix("hoist-loop-invariant-load", "Hoist the load out of the loop", safe=False)


def check(kernel: Kernel) -> Iterator[Finding]:
    if has_volatile(kernel):
        return
    apart = restricted(kernel)
    stays = [
        a
        for a in kernel.accesses
        if is_plain_load(a) and a.loop_step == 0 and a.basis in COUNTED and a.array not in apart
    ]
    said: set[tuple[int, str | None]] = set()
    changes_of: dict[tuple[str | None, int], list[Access]] = {}
    for access in kernel.accesses:
        if changes(access):
            changes_of.setdefault((access.array, access.launch), []).append(access)
    reasons: dict[tuple[int, str | None, int, bool], str] = {}  # many loads of one loop ask alike
    for access in worst_by_place(stays, lambda a: a.iterations):
        loop = loop_around(access.span)
        if loop is None or (loop.start_byte, access.array) in said or varies(access.span, loop):
            continue
        changed = changes_of.get((access.array, access.launch), [])
        sums = [a for a in changed if _is_sum(access, a, loop)]
        if len(sums) != len(changed):
            continue
        asked = (loop.start_byte, access.array, access.launch, bool(sums))
        if asked not in reasons:
            reasons[asked] = _reason(kernel, access, loop, apart, bool(sums))
        reason = reasons[asked]
        if not reason:
            continue
        said.add((loop.start_byte, access.array))
        own_text = access.span.source is kernel.source and kernel.span.start <= access.span.start < kernel.span.end
        yield Finding(
            span=access.span,
            array=access.array or "",
            message=_message(access, reason, bool(sums)),
            severity=Severity.HINT if access.iterations < FEW else severity,
            gain=without_repeats(kernel, access),
            evidence={
                "bytes": access.bytes,
                "basis": access.basis.value,
                "kept_in_the_loop_by": reason,
            },
            fixes=() if sums or not own_text else (HOIST,),
            related=launch_related(launch_of(kernel, access.launch)),
        )


def _is_sum(load: Access, store: Access, loop: Node) -> bool:
    """Whether the store is at the load's own address, in the same loop, as in `sum[i] += ...`."""
    same = store.expression == load.expression and store.loop_step == 0 and store.kind is AccessKind.STORE
    return same and inside(store, load.span, loop)


def _reason(kernel: Kernel, access: Access, loop: Node, apart: frozenset[str], is_sum: bool) -> str:
    """What in the loop keeps the compiler from moving the access; empty where nothing is seen to."""
    for other in kernel.accesses:
        if (
            other.launch != access.launch
            or other.array in (access.array, *apart)
            or not inside(other, access.span, loop)
        ):
            continue
        if changes(other):
            return f"the store to `{other.array}`"
        if is_sum and is_plain_load(other):
            return f"the load of `{other.array}`"
    calls = descendants(loop, "call_expression")
    barrier = any(access.span.source.node_code(call).startswith("__syncthreads") for call in calls)
    return "the barrier" if barrier else ""


def _message(access: Access, reason: str, is_sum: bool) -> str:
    if is_sum:
        return (
            f"{code(access.expression)} is loop-invariant but stored every iteration: {reason} may alias it\n"
            "Accumulate in a local variable and store it after the loop."
        )
    change = "lets other threads change it" if reason == "the barrier" else "may alias it"
    return (
        f"{code(access.expression)} is loop-invariant but reloaded: {reason} {change}\nLoad it once, before the loop."
    )
