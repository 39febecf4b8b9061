"""An array of a thread that lies in local memory.

## Why is this bad?

Registers have no addresses. An array of a thread stays in registers only where the compiler knows every index once
loops are unrolled; when a run-time value picks the element, or when registers cannot hold the array at all, it goes to
local memory. That is a part of global memory that each thread has to itself: every access is a load or store through
the L1 cache, and with thousands of threads the arrays soon pass what the cache holds and go to DRAM.

## Example

```cuda
__global__ void histogram(int *out, const unsigned char *in, int n) {
  int bins[64];
  for (int b = 0; b < 64; b++)
    bins[b] = 0;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = i; k < n; k += gridDim.x * blockDim.x)
    bins[in[k] % 64]++;
  for (int b = 0; b < 64; b++)
    atomicAdd(&out[b], bins[b]);
}

void run(int *out, const unsigned char *in, int n) {
  histogram<<<256, 256>>>(out, in, n);
}
```

## Use instead

```cuda
__global__ void histogram(int *out, const unsigned char *in, int n) {
  __shared__ int bins[64];
  if (threadIdx.x < 64)
    bins[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = i; k < n; k += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[k] % 64], 1);
  __syncthreads();
  if (threadIdx.x < 64)
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

void run(int *out, const unsigned char *in, int n) {
  histogram<<<256, 256>>>(out, in, n);
}
```

## Limits

- A warning never: whether the array can be done without is the algorithm's matter. Information where a loop whose
  length is a run-time value works on it, else a hint.
- Said once for each array, at an access that makes it local. Arrays of up to 24 words are left alone unless their
  elements are not of 4 bytes: the compiler picks elements of small ones by selects, depending on the code around.
- Indices count as known where they come from literals, template arguments, loops of constant length and choices between
  two numbers. A loop that the compiler does not unroll all the same (`#pragma unroll 1`, a long body) is not seen.
- There is no fix to press: shared memory, another order of loops, or bits of a register may take the array's place.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Access, Kernel, Space
from warpwright.rules.base import Finding, Severity
from warpwright.rules.weighing import is_small
from warpwright.rules.words import plural

severity = Severity.INFORMATION


def check(kernel: Kernel) -> Iterator[Finding]:
    arrays: dict[str, list[Access]] = {}
    for access in kernel.accesses:
        if access.space is Space.LOCAL:
            arrays.setdefault(access.why, []).append(access)
    for why, accesses in arrays.items():
        first = min(accesses, key=lambda a: (not a.run_time_index, not a.in_loop, a.span.path, a.span.start))
        looped = any(access.in_loop for access in accesses)
        places = len({(access.span.path, access.span.start) for access in accesses})
        yield Finding(
            span=first.span,
            message=(
                f"{why}\n{plural(places, 'access')[: None if places == 1 else -1]}{'es' if places != 1 else ''} to "
                f"local memory in place of registers{', in a loop' if looped else ''}."
            ),
            severity=Severity.INFORMATION if looped and not is_small(kernel) else Severity.HINT,
            evidence={
                "array": first.array,
                "accesses": places,
                "in_loop": looped,
                "basis": first.basis.value,
            },
        )
