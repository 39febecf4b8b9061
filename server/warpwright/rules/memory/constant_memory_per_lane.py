"""Lanes of a warp read different addresses of constant memory.

## Why is this bad?

The constant cache hands one word to all 32 lanes in one pass (CUDA C++ Programming Guide, "Constant Memory"). Where the
lanes want different words, a request is repeated for each of them: an array in `__constant__` memory that is indexed by
threadIdx.x takes 32 passes, where a load of global memory would take one.

## Example

```cuda
__constant__ float window[256];

__global__ void apply_window(float *out, const float *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * window[threadIdx.x];
}

void run(float *out, const float *in, int blocks) { apply_window<<<blocks, 256>>>(out, in); }
```

## Use instead

Global memory, which serves consecutive lanes together; a table that is read often belongs into shared memory:

```cuda
__global__ void apply_window(float *out, const float *in, const float *window) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * window[threadIdx.x];
}

void run(float *out, const float *in, const float *window, int blocks) {
  apply_window<<<blocks, 256>>>(out, in, window);
}
```

## Limits

- From 8 addresses for each request it is a warning, from 2 information.
- An index that is read from memory is information: how many different words the lanes want depends on the data.
- Arrays in a kernel's parameters, which are constant memory too, are not looked at. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import AccessKind, Basis, Kernel, Space
from warpwright.rules.base import Finding, Severity
from warpwright.rules.weighing import COUNTED, at_most, weighed, worst_by_place
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related, number

severity = Severity.WARNING

NOTABLE = 2.0
"""Addresses for each request from which it is said."""
GRAVE = 8.0
"""From here it is a warning."""


def check(kernel: Kernel) -> Iterator[Finding]:
    constant = [a for a in kernel.accesses if a.space is Space.CONSTANT and a.kind is AccessKind.LOAD]
    said: set[str | None] = set()
    for access in worst_by_place(constant, lambda a: a.addresses_per_request or 0.0):
        count = access.addresses_per_request
        launch = launch_of(kernel, access.launch)
        if access.basis in COUNTED and count is not None and count >= NOTABLE:
            level = Severity.WARNING if count >= GRAVE else Severity.INFORMATION
            says = f"Serialized constant load {code(access.expression)}: {number(count)} addresses/request (ideal 1)"
            says += because(launch, access.basis, access.why)
        elif access.basis is Basis.DATA_DEPENDENT and access.array not in said:
            level = Severity.INFORMATION
            says = f"Data-dependent constant load {code(access.expression)}: one pass per distinct address in a warp"
        else:
            continue
        said.add(access.array)
        yield Finding(
            span=access.span,
            array=access.array or "",
            message=(
                f"{says}\nConstant memory is for uniform loads; keep `{access.array}` in shared or global memory."
            ),
            severity=at_most(level, weighed(kernel, access, level)),
            evidence={
                "addresses_per_request": count,
                "active_lanes": round(access.active_lanes, 3),
                "bytes": access.bytes,
                "basis": access.basis.value,
                **launch_evidence(launch),
            },
            related=launch_related(launch),
        )
