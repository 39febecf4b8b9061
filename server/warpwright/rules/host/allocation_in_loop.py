"""Device memory is allocated or freed in each iteration of a loop.

## Why is this bad?

`cudaMalloc` takes some 10 to 100 us and `cudaFree` waits for all that the GPU does. In a loop around kernels they are
often the longest part of it.

## Example

```cuda
__global__ void step(float *x, float *scratch) { x[threadIdx.x] += scratch[threadIdx.x]; }

void run(float *x, int steps) {
  for (int i = 0; i < steps; ++i) {
    float *scratch;
    cudaMalloc(&scratch, 1024);
    step<<<1, 256>>>(x, scratch);
    cudaFree(scratch);
  }
}
```

## Use instead

```cuda
__global__ void step(float *x, float *scratch) { x[threadIdx.x] += scratch[threadIdx.x]; }

void run(float *x, int steps) {
  float *scratch;
  cudaMalloc(&scratch, 1024);
  for (int i = 0; i < steps; ++i)
    step<<<1, 256>>>(x, scratch);
  cudaFree(scratch);
}
```

## Limits

- In a loop that launches or copies. `cudaMallocAsync`, which takes memory of a pool, is left alone.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.host._statements import host_functions, launches_in, loop_around, runtime_calls

severity = Severity.INFORMATION

_ALLOCATES = re.compile(r"(?:cuda|hip)(?:Malloc(?:Managed|Host|Pitch)?|HostAlloc|StreamCreate\w*|EventCreate\w*)")


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in host_functions(unit):
        for call, name, _ in runtime_calls(function, _ALLOCATES):
            loop = loop_around(function, call)
            if loop is not None and launches_in(loop):
                yield Finding(
                    span=function.source.span(call),
                    message=(
                        f"`{name}` is called in each iteration: some 10 to 100 us each (assumed)\n"
                        "Allocate once, before the loop, or use cudaMallocAsync."
                    ),
                    evidence={"call": name, "function": function.name},
                    related=(Related(function.source.span(loop), "the loop"),),
                    kernel=function.name,
                )
