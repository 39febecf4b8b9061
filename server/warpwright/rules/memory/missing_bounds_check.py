"""An access that certainly lies outside of its array.

## Why is this bad?

A grid is made of whole blocks, so that its last threads often have numbers beyond the end of the data. What they read
there belongs to something else, and what they write destroys it; whether anybody notices is chance. The usual cure is a
test of the thread's index, `if (i < n)`, before the first access.

## Example

```cuda
constexpr int kCount = 1000;

__global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] *= factor;
}

void run(float *host) {
  float *x;
  cudaMalloc(&x, kCount * sizeof(float));
  cudaMemcpy(x, host, kCount * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<(kCount + 255) / 256, 256>>>(x, 2.0f, kCount);
  cudaMemcpy(host, x, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(x);
}
```

## Use instead

```cuda
constexpr int kCount = 1000;

__global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  x[i] *= factor;
}

void run(float *host) {
  float *x;
  cudaMalloc(&x, kCount * sizeof(float));
  cudaMemcpy(x, host, kCount * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<(kCount + 255) / 256, 256>>>(x, 2.0f, kCount);
  cudaMemcpy(host, x, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(x);
}
```

## Limits

- From the text only certain cases are reported: the grid, the block and the bytes of the array follow from the text,
  as do the address and the conditions around the access. Where all of this follows from the one size that the host
  function is given, a size that is not a multiple of the block is tried, which is a warning; other sizes that come from
  outside are not judged, nor where the function asks for a multiple.
- Of global memory, arrays that are allocated in the function that launches and handed over by their name, and
  `__device__` and `__constant__` ones. Of shared memory, the kernel's own arrays, and dynamic ones whose bytes the
  launch gives. Of a thread's own arrays, subscripts.
- Of a long loop, its first iterations alone are judged.
- `warpwright check --profile` finds the others in a run of the kernel, where nothing that they depend on had to be
  guessed, and confirms those of the text. It withdraws none: the arrays of a run may be larger.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import AccessKind, Kernel, OutOfBounds
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.verdicts import confirmed
from warpwright.rules.words import launch_evidence, launch_of, launch_related, place_of, plural

severity = Severity.ERROR

FIXES = (
    Fix("add-bounds-guard", "Test the thread's index"),
    Fix("guard-load", "Test the load as the store is tested", safe=False),
)
BYTES = Fix("ask-for-bytes", "Multiply by the size of an element")

_DOES = {AccessKind.LOAD: "reads", AccessKind.STORE: "writes", AccessKind.ATOMIC: "updates"}


def check(kernel: Kernel) -> Iterator[Finding]:
    read = list(confirmed(kernel, _read(kernel), FaultKind.OUT_OF_BOUNDS))
    yield from read
    yield from of_runs(kernel, FaultKind.OUT_OF_BOUNDS, told=read)


def _read(kernel: Kernel) -> Iterator[Finding]:
    found: set[tuple[str, int, int]] = set()
    given = {parameter.name for parameter in kernel.parameters}
    sized = given | {array.name for array in kernel.shared_arrays if array.dynamic}
    for access in kernel.outside:
        if access.span.key in found:  # `x[i] += 1` reads and writes
            continue
        found.add(access.span.key)
        launch = launch_of(kernel, access.launch)
        yield Finding(
            span=access.span,
            message=f"Out of bounds: {_words(access)}{_supposed(access)}",
            severity=None if access.supposed is None else Severity.WARNING,
            evidence={"array": access.array, "byte": access.address, "bytes": access.size, **launch_evidence(launch)},
            fixes=((BYTES,) if access.array in sized and _counts_elements(access) else ())
            + (FIXES if access.array in given else ()),
            related=launch_related(launch),
        )


def _counts_elements(access: OutOfBounds) -> bool:
    """Whether the array has as many bytes as it should have elements."""
    return access.bytes > 1 and access.address + access.bytes == access.size * access.bytes


def _supposed(access: OutOfBounds) -> str:
    return (
        ""
        if access.supposed is None
        else f"\nFound with a size of {access.supposed:,}, which is not a multiple of the block."
    )


def _words(access: OutOfBounds) -> str:
    who = f"thread {access.thread:,} of block {place_of(access.block)} {_DOES[access.kind]}"
    if access.size == 0:
        return f"{who} {access.array}, which is null"
    if access.address < 0:
        return f"{who} {plural(-access.address, 'byte')} before the start of {access.array}"
    if access.address % access.bytes or access.size % access.bytes:
        return f"{who} byte {access.address:,} of {access.array}, which has {access.size:,} bytes"
    elements = access.size // access.bytes
    return f"{who} element {access.address // access.bytes:,} of {access.array}, which has {elements:,}"
