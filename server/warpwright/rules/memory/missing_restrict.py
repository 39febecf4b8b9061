"""Loads wait for stores that do not concern them, because two pointers may lead to the same memory.

## Why is this bad?

nvcc takes any two pointers of a kernel for pointers to the same memory, whatever their types, unless one is
`__restrict__`. A load that stands after a store then waits for it. nvcc unrolls a loop whose step is a constant, and
could load for all of these iterations at once: for the loop below, nvcc 13 issues one load and one store in turn, and
with `__restrict__` four loads, then four stores. A value that is loaded before such a store and again after it is
loaded twice.

## Example

```cuda
__global__ void square(float *out, const float *in, int columns) {
  int row = blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += 256) {
    out[row + i] = in[row + i] * in[row + i];
  }
}

void run(float *out, const float *in, int rows, int columns) { square<<<rows, 256>>>(out, in, columns); }
```

## Use instead

```cuda
__global__ void square(float *__restrict__ out, const float *__restrict__ in, int columns) {
  int row = blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += 256) {
    out[row + i] = in[row + i] * in[row + i];
  }
}

void run(float *out, const float *in, int rows, int columns) { square<<<rows, 256>>>(out, in, columns); }
```

## Limits

- Said where a loop that nvcc unrolls both loads and stores, where a load of an iteration stands after a store, and
  where one element is loaded again after a store to another array. A loop by `gridDim.x * blockDim.x` is not unrolled,
  and a kernel that loads first and stores last has nothing to gain.
- Not said where a launch found hands the same array to both pointers. What a launch elsewhere hands over is not
  known.
- It is a hint: how much is gained depends on how many warps there are to hide the wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.aliasing import (
    changes,
    has_volatile,
    is_plain_load,
    known_overlaps,
    loop_around,
    restrictable,
)
from warpwright.facts.model import Access, AccessKind, Kernel
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.words import code
from warpwright.syntax.nodes import LOOPS, descendants
from warpwright.syntax.source import Source

severity = Severity.HINT

_CONSTANT_STEP = re.compile(r"\w+\s*(?:\+\+|--)|(?:\+\+|--)\s*\w+|\w+\s*[+-]=\s*(?:\d+|[A-Z][A-Z0-9_]*)")
_PRAGMA = re.compile(rb"^\s*#\s*pragma\s+unroll\s*\(?\s*(\d+)?")

Pair = tuple[Access, Access]
"""A load and a store that may be of the same memory."""


def check(kernel: Kernel) -> Iterator[Finding]:
    if kernel.node is None or has_volatile(kernel):
        return
    plain = restrictable(kernel).keys()
    changed = {a.array for a in kernel.accesses if changes(a)}
    loads = [a for a in kernel.accesses if is_plain_load(a) and a.array in plain - changed]
    stores = [a for a in kernel.accesses if a.kind is AccessKind.STORE and a.array in plain]
    found = next((p for p in _alternating(loads, stores) if _may_be_apart(kernel, p)), None)
    again = next((p for p in _loaded_again(loads, stores) if _may_be_apart(kernel, p)), None)
    if found is not None:
        load, store = found
        why = "in a loop, loads wait for the stores before them"
    elif again is not None:
        load, store = again
        why = f"{code(load.expression)} is reloaded after the store"
    else:
        return
    yield Finding(
        span=kernel.name_span,
        message=(
            f"`{load.array}` and `{store.array}` may alias: {why}\n"
            "Declare the pointers __restrict__ if they do not overlap."
        ),
        evidence={
            "load": load.expression,
            "store": store.expression,
            "basis": load.basis.value,
        },
        fixes=(Fix("add-restrict", "Declare the pointers __restrict__", safe=False),),
        related=(Related(load.span, f"loads {load.array}"), Related(store.span, f"stores to {store.array}")),
    )


def _may_be_apart(kernel: Kernel, pair: Pair) -> bool:
    arrays = {pair[0].array, pair[1].array}
    return not any(found.is_certain and {found.one, found.other} == arrays for found in known_overlaps(kernel))


def _alternating(loads: list[Access], stores: list[Access]) -> Iterator[Pair]:
    """Loads and stores of one loop, at addresses that move on with it, where a store comes before a load."""
    by_loop: dict[tuple[str, int, int], list[Access]] = {}
    for load in loads:
        if (loop := _loop(load)) is not None:
            by_loop.setdefault((load.span.path, loop.start_byte, load.launch), []).append(load)
    for store in stores if by_loop else ():
        if (loop := _loop(store)) is not None:
            unrolled = _is_unrolled(loop, store.span.source)
            for load in by_loop.get((store.span.path, loop.start_byte, store.launch), ()):
                if unrolled or _done(store) < load.span.start:
                    yield load, store


def _loop(access: Access) -> Node | None:
    """The loop that an access moves on with, unless a barrier orders what it does."""
    if not access.in_loop or access.loop_step == 0:
        return None
    loop = loop_around(access.span)
    if loop is None or b"__syncthreads" in access.span.source.data[loop.start_byte : loop.end_byte]:
        return None
    return loop


def _is_unrolled(loop: Node, source: Source) -> bool:
    """Whether nvcc is likely to unroll the loop: an innermost `for` with a constant step, or one that is told to.

    A name in capitals is taken for a constant.
    """
    if loop.type != "for_statement" or any(inner != loop for inner in descendants(loop, *LOOPS)):
        return False
    lines = source.data[: loop.start_byte].rstrip().splitlines()
    told = _PRAGMA.search(lines[-1]) if lines else None
    if told is not None:
        return told.group(1) != b"1"
    update = loop.child_by_field_name("update")
    return update is not None and _CONSTANT_STEP.fullmatch(source.node_code(update)) is not None


def _done(store: Access) -> int:
    """Where the store is done: at the end of its statement, since `a = b` loads b first."""
    end = store.span.source.data.find(b";", store.span.end)
    return end if end >= 0 else len(store.span.source.data)


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
            same_text = store.span.path == load.span.path and store.launch == load.launch
            if same_text and before.span.start < _done(store) < load.span.start:
                yield load, store
