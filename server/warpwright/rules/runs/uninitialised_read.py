"""A thread reads memory that nothing has written.

## Why is this bad?

Shared memory starts with whatever the block before left there, and memory from `cudaMalloc` with what was freed. A
value of it is often zero in a test and something else in use.

## Example

```cuda
__global__ void smooth(float *out, const float *in) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = in[i];
  __syncthreads();
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<64, 128>>>(out, in);
}
```

## Use instead

```cuda
__global__ void smooth(float *out, const float *in) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = in[i];
  if (threadIdx.x < 2)
    tile[129 * threadIdx.x] = 0.0f;
  __syncthreads();
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<64, 128>>>(out, in);
}
```

## Limits

- From the text, of shared memory only reads are reported that no thread of the block writes, or the same one later: of
  arrays that are only subscripted, at a launch whose block the text gives, where all of its accesses follow from it.
- From the text, of a thread's own array: elements of numbers that it reads before it sets any of that place, of arrays
  of the kernel that are only subscripted.
- From the text, of global memory: what a launch reads before the threads meet, and no other thread writes, of memory
  that the host function allocates and hands to this launch first; and what the kernel only ever adds to by atomics.
- The others are found by a run: `warpwright check --profile`, or a profile in the editor. A run shows one launch on
  made-up values; where threads may miss a barrier, what is read after it is not judged.
- Of global memory, arrays that the kernel only writes before the launch's own stores. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Basis, Kernel, Space
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.words import because, launch_evidence, launch_of, launch_related

severity = Severity.ERROR


def check(kernel: Kernel) -> Iterator[Finding]:
    read = list(_read(kernel))
    yield from read
    parted = any(fault.kind == FaultKind.BARRIER_NOT_REACHED and len(fault.threads) > 1 for fault in kernel.faults)
    missed = kernel.missed_waits or kernel.doubtful_waits or any(barrier.divergent for barrier in kernel.barriers)
    if not parted and not missed:
        yield from of_runs(kernel, FaultKind.UNINITIALISED_READ, told=read)


def _read(kernel: Kernel) -> Iterator[Finding]:
    for read in kernel.unwritten:
        launch = launch_of(kernel, read.launch)
        if launch is None:
            continue
        byte, thread = f"byte {read.address:,}", f"thread {read.thread}"
        what = f"{thread} reads {byte}, never written"
        if read.space is Space.GLOBAL:
            what = f"{thread} reads {byte}, never written by host or kernel"
        yield Finding(
            span=read.span,
            message=f"Uninitialised read of `{read.array}`: {what}{because(launch, Basis.EXACT)}",
            evidence={"array": read.array, "byte": read.address, "thread": read.thread, **launch_evidence(launch)},
            related=launch_related(launch),
        )
