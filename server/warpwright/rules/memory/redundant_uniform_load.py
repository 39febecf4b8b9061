"""All lanes of a warp load one address of global memory, another one at every iteration.

## Why is this bad?

A request that all lanes make for one address uses 4 bytes of the 128 that it could bring, and in a loop each iteration
waits for its own: the naive product of matrices reads a row so. Where every thread of the block walks over the same
elements, each warp loads all of them for itself: in a block of 256 threads the block makes eight times as many requests
as there are elements. Loaded once per block into shared memory, one element by each lane, a tile of 256 elements costs
eight requests in all.

## Example

```cuda
__global__ void potential(float *out, const float *at, const float *mass, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float own = at[i], sum = 0.0f;
  for (int j = 0; j < n; j++) sum += mass[j] * fabsf(at[j] - own);
  out[i] = sum;
}

void run(float *out, const float *at, const float *mass, int n) {
  potential<<<n / 256, 256>>>(out, at, mass, n);
}
```

## Use instead

```cuda
__global__ void potential(float *out, const float *at, const float *mass, int n) {
  __shared__ float mass_tile[256];
  __shared__ float at_tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float own = at[i], sum = 0.0f;
  for (int j_start = 0; j_start < n; j_start += 256) {
    const int j_end = n - j_start < 256 ? n : j_start + 256;
    for (int j = j_start + threadIdx.x; j < j_end; j += blockDim.x) {
      mass_tile[j - j_start] = mass[j];
      at_tile[j - j_start] = at[j];
    }
    __syncthreads();
    for (int j = j_start; j < j_end; j++) sum += mass_tile[j - j_start] * fabsf(at_tile[j - j_start] - own);
    __syncthreads();
  }
  out[i] = sum;
}

void run(float *out, const float *at, const float *mass, int n) {
  potential<<<n / 256, 256>>>(out, at, mass, n);
}
```

## Limits

- Only an address that moves by a constant from one iteration to the next, by a few elements, is found: neighbouring
  iterations use one sector, so that the data of 32 iterations could come with one request.
- Only in loops of at least 32 iterations, in blocks of more than one warp, of arrays that the kernel does not change.
- The L1 cache serves most of these loads, so it is information, and once for each loop; of integers, which are mostly
  offsets, it is a hint.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.aliasing import changes, loop_around
from warpwright.facts.model import SECTOR_BYTES, WARP, Access, AccessKind, Kernel, Space
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.weighing import COUNTED, at_most, weighed, worst_by_place
from warpwright.rules.words import because, launch_evidence, launch_of, launch_related

severity = Severity.INFORMATION

MANY = float(WARP)
"""Iterations from which a tile in shared memory pays."""
DATA_TYPES = ("float", "double", "half")
"""What sums are made of. Integers are offsets more often, of which there are few."""


def check(kernel: Kernel) -> Iterator[Finding]:
    changed = {a.array for a in kernel.accesses if changes(a)}
    uniform = [a for a in kernel.accesses if a.array not in changed and _is_walked_together(kernel, a)]
    loops: dict[int, list[Access]] = {}
    for access in worst_by_place(uniform, lambda a: a.iterations):
        loop = loop_around(access.span)
        if loop is not None:
            loops.setdefault(loop.start_byte, []).append(access)
    for accesses in loops.values():
        first = min(accesses, key=lambda a: a.span.start)
        launch = launch_of(kernel, first.launch)
        level = severity if any(a.type in DATA_TYPES or a.structure is not None for a in accesses) else Severity.HINT
        arrays = " and ".join(dict.fromkeys(f"`{a.array}`" for a in accesses))
        yield Finding(
            span=first.span,
            message=(
                f"Uniform load of {arrays} in a loop: all {WARP} lanes read one address per iteration"
                f"{because(launch, first.basis)}\n{_advice(accesses)}"
            ),
            severity=at_most(level, weighed(kernel, first, level)),
            evidence={
                "bytes": first.bytes,
                "bytes_per_iteration": first.loop_step,
                "arrays": sorted({str(a.array) for a in accesses}),
                "basis": first.basis.value,
                **launch_evidence(launch),
            },
            related=launch_related(launch),
            fixes=(Fix("stage-common-loads", "Stage it in shared memory", safe=False),),
        )


def _advice(accesses: list[Access]) -> str:
    tile = "Stage a tile in shared memory, one element per lane"
    if any(access.by_thread for access in accesses):
        return f"{tile}: one request covers {WARP} iterations."
    return f"{tile}: all warps of the block share it. Small read-only data belongs in constant memory."


def _is_walked_together(kernel: Kernel, access: Access) -> bool:
    """Whether all lanes read one address, and the next iteration's is beside it."""
    launch = launch_of(kernel, access.launch)
    several = launch is not None and (launch.threads or 0) > WARP
    loads = access.space is Space.GLOBAL and access.kind is AccessKind.LOAD and access.basis in COUNTED
    alike = access.addresses_per_request == 1 and access.active_lanes > WARP / 2
    beside = access.loop_step is not None and 0 < abs(access.loop_step) <= SECTOR_BYTES
    return several and loads and alike and beside and access.iterations >= MANY
