"""A lane moves consecutive elements one by one, which one wider access could move.

## Why is this bad?

Each access is an instruction, and a request that the L1 cache must serve. A lane that reads `a[4 * i]` to `a[4 * i +
3]` makes four requests of 16 sectors each; one `float4` makes one. The compiler may not merge them: a `float *` is
known to be aligned to 4 bytes, not to 16. A kernel that moves one byte or one half in each lane fills a quarter or a
half of what a request can carry, and needs as many times more requests in flight for the same bandwidth.

## Example

```cuda
__global__ void luminance(float *out, const float *rgba, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.30f * rgba[4 * i] + 0.59f * rgba[4 * i + 1] + 0.11f * rgba[4 * i + 2] + rgba[4 * i + 3];
}

void run(float *out, const float *rgba, int n) {
  luminance<<<(n + 255) / 256, 256>>>(out, rgba, n);
}
```

## Use instead

A pointer whose type carries the alignment:

```cuda
__global__ void luminance(float *out, const float4 *rgba, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = rgba[i];
    out[i] = 0.30f * v.x + 0.59f * v.y + 0.11f * v.z + v.w;
  }
}

void run(float *out, const float4 *rgba, int n) {
  luminance<<<(n + 255) / 256, 256>>>(out, rgba, n);
}
```

## Limits

- Found where the lanes' elements are contiguous in all: nothing of what lies between them is left unused.
- The array must be aligned to the wider type, as memory from cudaMalloc is; an offset into it may not be.
- Bytes and halves are said once for each kernel, as a hint, and only where all that it loads and stores is so narrow.
- There is no fix to press for consecutive elements. Bytes and halves have one, vectorize-elementwise, for kernels that
  do the same to each element of their arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import SECTOR_BYTES, WARP, Access, AccessKind, Kernel, Space
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.memory._lanes import elements_of_a_lane, stride
from warpwright.rules.weighing import COUNTED, at_most, weighed
from warpwright.rules.words import because, launch_evidence, launch_of, launch_related, plural

severity = Severity.INFORMATION

WORD = 4
"""Bytes in each lane with which a request fills a line of 128 bytes."""


def check(kernel: Kernel) -> Iterator[Finding]:
    counted = [a for a in kernel.accesses if a.space is Space.GLOBAL and a.basis in COUNTED]
    said: set[int] = set()
    for access in counted:
        if access.span.start in said or not (parts := elements_of_a_lane(kernel, access)):
            continue
        said |= {part.span.start for part in parts}
        yield _elements(kernel, parts)
    if narrow := _all_narrow(kernel):
        yield _small(kernel, narrow)


def _elements(kernel: Kernel, parts: list[Access]) -> Finding:
    first = min(parts, key=lambda a: a.span.start)
    launch = launch_of(kernel, first.launch)
    together = sum(part.bytes for part in parts)
    sectors = sum(part.sectors_per_request or 0.0 for part in parts)
    apart = plural(first.sectors_per_request or 0.0, "sector")
    level = severity if len(parts) >= WARP // 8 else Severity.HINT
    return Finding(
        span=first.span,
        message=(
            f"Narrow {first.kind.value}s of `{first.array}`: {together} B per lane in {len(parts)} requests"
            f"{because(launch, first.basis, f'{apart} per request')}\n"
            f"One {together}-byte vector access takes {plural(together * WARP / SECTOR_BYTES, 'sector')}, if "
            f"`{first.array}` is {together}-byte aligned."
        ),
        severity=at_most(level, weighed(kernel, first, level)),
        evidence={
            "requests": len(parts),
            "bytes_per_lane": together,
            "sectors": round(sectors, 3),
            "ideal_sectors": together * WARP // SECTOR_BYTES,
            "basis": first.basis.value,
            **launch_evidence(launch),
        },
        related=launch_related(launch),
    )


def _all_narrow(kernel: Kernel) -> list[Access]:
    """What a kernel loads and stores, where all of it is contiguous and narrower than a word; else nothing."""
    if (
        kernel.shared_arrays
        or kernel.barriers
        or {a.kind for a in kernel.accesses} != {AccessKind.LOAD, AccessKind.STORE}
    ):
        return []
    streams = [a for a in kernel.accesses if a.addresses_per_request != 1 and not a.joined]
    narrow = all(a.basis in COUNTED and a.bytes < WORD and stride(a.lanes) == a.bytes for a in streams)
    return streams if narrow else []


def _small(kernel: Kernel, accesses: list[Access]) -> Finding:
    loads = [a for a in accesses if a.kind is AccessKind.LOAD]
    first = min(loads or accesses, key=lambda a: a.span.start)
    launch = launch_of(kernel, first.launch)
    each = plural(first.bytes, "byte")
    return Finding(
        span=first.span,
        message=(
            f"Narrow accesses: {each} per lane, {first.bytes * WARP} of {WORD * WARP} bytes per request"
            f"{because(launch, first.basis)}\nVectorize: move {WORD // first.bytes} elements per lane as one word."
        ),
        severity=Severity.HINT,
        evidence={
            "bytes": first.bytes,
            "bytes_per_request": first.bytes * WARP,
            "accesses": len(accesses),
            "basis": first.basis.value,
            **launch_evidence(launch),
        },
        fixes=(Fix("vectorize-elementwise", "Vectorize the element accesses"),),
        related=launch_related(launch),
    )
