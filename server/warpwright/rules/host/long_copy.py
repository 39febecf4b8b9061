"""A copy or a fill is of more bytes than its array has.

## Why is this bad?

What lies beyond an array belongs to another, or to nobody: the copy fails with an invalid argument, or reads and writes
another array's data. Which of the two is decided by what else is allocated.

## Example

```cuda
__global__ void halve(float *out, const float *in) {
  out[threadIdx.x] = 0.5f * (in[2 * threadIdx.x] + in[2 * threadIdx.x + 1]);
}

void run(float *host, int n) {
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n / 2 * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  halve<<<1, n / 2>>>(out, in);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
}
```

## Use instead

```cuda
__global__ void halve(float *out, const float *in) {
  out[threadIdx.x] = 0.5f * (in[2 * threadIdx.x] + in[2 * threadIdx.x + 1]);
}

void run(float *host, int n) {
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n / 2 * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  halve<<<1, n / 2>>>(out, in);
  cudaMemcpy(host, out, n / 2 * sizeof(float), cudaMemcpyDeviceToHost);
}
```

## Limits

- Of pointers that the function hands to the kernel by their names and allocates once, where the copy is longer whatever
  the variables in both sizes hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.host._pointers import pointers_of
from warpwright.rules.host._sizes import is_larger
from warpwright.rules.words import code

severity = Severity.ERROR

FIXES = (Fix("copy-whole-array", "Ask for all bytes of the array"),)


def check(kernel: Kernel) -> Iterator[Finding]:
    for function, name in pointers_of(kernel):
        source, allocations = function.source, function.allocations.get(name, ())
        if len(allocations) != 1 or len(function.settings.get(name, ())) != 1 or len(allocations[0].arguments) < 2:
            continue
        allocated = allocations[0].arguments[1]
        for call in function.moves.get(name, ()):
            if len(call.arguments) > 2 and is_larger(function, call.arguments[2], allocated):
                size = source.node_code(call.arguments[2])
                yield Finding(
                    span=source.span(call.arguments[2]),
                    message=f"`{name}` has {code(source.node_code(allocated))} bytes, {code(size)} are copied or set",
                    evidence={"pointer": name, "bytes": size, "allocated": source.node_code(allocated)},
                    fixes=FIXES,
                    related=(Related(source.span(allocations[0].node), "allocated here"),),
                )
