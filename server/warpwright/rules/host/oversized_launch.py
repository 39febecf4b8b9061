"""A launch is larger than the GPU takes.

## Why is this bad?

A block has at most 1024 threads, 1024 x 1024 x 64, a grid at most 65535 blocks in y and z, and more than 48 KiB of
dynamic shared memory must be asked for. Beyond that the launch fails, the kernel does not run, and only
`cudaGetLastError()` knows.

## Example

```cuda
__global__ void twice(float *x) { x[blockIdx.x * 2048 + threadIdx.y * 64 + threadIdx.x] *= 2.0f; }

void run(float *x) { twice<<<16, dim3(64, 32)>>>(x); }
```

## Use instead

```cuda
__global__ void twice(float *x) { x[blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x] *= 2.0f; }

void run(float *x) { twice<<<32, dim3(32, 32)>>>(x); }
```

## Limits

- Launches whose shape the text gives. Whether shared memory was asked for is looked up in the file and what it
  includes.
  There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Basis, Kernel, Launch
from warpwright.rules.base import Finding, Severity

severity = Severity.ERROR

_MOST_IN_BLOCK = (1024, 1024, 64)
_MOST_IN_GRID = ((1 << 31) - 1, 65535, 65535)
_UNASKED = 48 << 10
"""Bytes of dynamic shared memory that need no cudaFuncSetAttribute."""


def check(kernel: Kernel) -> Iterator[Finding]:
    asks = any(b"MaxDynamicSharedMemorySize" in source.data for source in kernel.sources.values())
    for launch in kernel.launches:
        over = _over(launch, asks=asks)
        if over and launch.span is not None and launch.basis is Basis.EXACT:
            yield Finding(
                span=launch.span,
                message=f"`{kernel.name}` fails to launch: {over}\nSplit the work over more blocks.",
                evidence={"grid": list(launch.grid), "block": list(launch.block), "over": over},
            )


def _over(launch: Launch, *, asks: bool) -> str:
    """Which limit a launch is over, in words; "" for none."""
    if launch.threads is not None and launch.threads > MAX_THREADS_PER_BLOCK:
        return f"{launch.threads} threads per block (at most {MAX_THREADS_PER_BLOCK})"
    for what, shape, most in (("block", launch.block, _MOST_IN_BLOCK), ("grid", launch.grid, _MOST_IN_GRID)):
        for axis, size, limit in zip("xyz", shape, most, strict=True):
            if size is not None and size > limit:
                return f"{what}.{axis} = {size} (at most {limit})"
    if not asks and (launch.dynamic_shared_bytes or 0) > _UNASKED:
        return f"{launch.dynamic_shared_bytes} B of dynamic shared memory ({_UNASKED} unless asked for)"
    return ""
