"""Loads wait for stores that do not concern them, because two pointers may lead to the same memory.

## Why is this bad?

nvcc takes any two pointers of a kernel for pointers to the same memory, whatever their types, unless one is
`__restrict__`. In a loop that loads from one and stores to the other it may not start the next iteration's load before
this one's store, and with nothing to overlap, each iteration waits for memory by itself: with `__restrict__`, nvcc 13
issues sixteen loads of the loop below at once, then sixteen stores. A value that is loaded before such a store and
again after it is loaded twice.

## Example

```cuda
__global__ void square(float *out, const float *in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = in[i] * in[i];
  }
}

void run(float *out, const float *in, int n) { square<<<128, 256>>>(out, in, n); }
```

## Use instead

```cuda
__global__ void square(float *__restrict__ out, const float *__restrict__ in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = in[i] * in[i];
  }
}

void run(float *out, const float *in, int n) { square<<<128, 256>>>(out, in, n); }
```

## Limits

- Said where loads and stores alternate in a loop of the kernel's own text, or where one element is loaded again after a
  store to another array; a kernel that loads first and stores last has nothing to gain.
- Not said where a launch in sight hands the same array to both pointers. What a launch elsewhere hands over is not
  known.
- It is a hint: how much is gained depends on how many warps there are to hide the wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.aliasing import (
    changes,
    handed_the_same,
    has_volatile,
    is_plain_load,
    loop_around,
    restrictable,
)
from warpwright.facts.model import Access, AccessKind, Kernel
from warpwright.rules.base import Finding, Fix, Related, Severity

severity = Severity.HINT

Pair = tuple[Access, Access]
"""A load and a store that may be of the same memory."""


def check(kernel: Kernel) -> Iterator[Finding]:
    if kernel.node is None or has_volatile(kernel):
        return
    plain = restrictable(kernel).keys()
    overlapping = {frozenset(pair) for pair in handed_the_same(kernel)}
    changed = {a.array for a in kernel.accesses if changes(a)}
    loads = [a for a in kernel.accesses if is_plain_load(a) and a.array in plain - changed]
    stores = [a for a in kernel.accesses if a.kind is AccessKind.STORE and a.array in plain]
    found = next((p for p in _alternating(loads, stores) if frozenset(_arrays(p)) not in overlapping), None)
    again = next((p for p in _loaded_again(loads, stores) if frozenset(_arrays(p)) not in overlapping), None)
    if found is not None:
        load, store = found
        why = f"the loop's next load of {load.array} waits for this iteration's store to {store.array}"
    elif again is not None:
        load, store = again
        why = f"{load.expression} is loaded again after the store to {store.array}"
    else:
        return
    yield Finding(
        span=kernel.name_span,
        message=(
            f"{load.array} and {store.array} may be the same memory, as far as the compiler knows: {why}. Declare the "
            "pointers __restrict__ if they do not overlap."
        ),
        evidence={
            "load": load.expression,
            "store": store.expression,
            "basis": load.basis.value,
        },
        fixes=(Fix("add-restrict", "Declare the pointers __restrict__", safe=False),),
        related=(Related(load.span, f"loads {load.array}"), Related(store.span, f"stores to {store.array}")),
    )


def _arrays(pair: Pair) -> tuple[str | None, str | None]:
    return pair[0].array, pair[1].array


def _alternating(loads: list[Access], stores: list[Access]) -> Iterator[Pair]:
    """Loads and stores of one loop, at addresses that move on with it."""
    by_loop: dict[tuple[str, int, int], list[Access]] = {}
    for load in loads:
        if (key := _loop(load)) is not None:
            by_loop.setdefault(key, []).append(load)
    for store in stores if by_loop else ():
        if (key := _loop(store)) is not None:
            yield from ((load, store) for load in by_loop.get(key, ()))


def _loop(access: Access) -> tuple[str, int, int] | None:
    """The loop that an access moves on with."""
    if not access.in_loop or access.loop_step == 0:
        return None
    loop = loop_around(access.span)
    return (access.span.path, loop.start_byte, access.launch) if loop is not None else None


def _loaded_again(loads: list[Access], stores: list[Access]) -> Iterator[Pair]:
    """Loads of the same addresses before and after a store, in the same loop or outside of all, as the text stands."""
    first: dict[tuple[str, int, str, int], Access] = {}
    for load in loads:
        loop = loop_around(load.span)
        key = (load.expression, load.launch, load.span.path, loop.start_byte if loop is not None else 0)
        before = first.setdefault(key, load)
        if before is load or before.lanes is None or before.lanes != load.lanes:
            continue
        for store in stores:
            done = store.span.source.data.find(b";", store.span.end)  # `a = b` loads b first
            same_text = store.span.path == load.span.path and store.launch == load.launch
            if same_text and before.span.start < done < load.span.start:
                yield load, store
