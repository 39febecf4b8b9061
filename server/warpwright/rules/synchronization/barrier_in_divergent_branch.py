"""A barrier that part of the block does not reach.

## Why is this bad?

`__syncthreads()` waits for every thread of the block that still runs. When some of them take the other side of a branch
and go on, the behaviour is undefined: the block hangs, or meets at another barrier and works with data that was not
ready. It often goes unseen as long as the size of the data is a multiple of the block's.

A barrier *behind* an early `return` is a different matter and is not reported: since Volta, threads that have ended are
not waited for.

## Example

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    window[threadIdx.x] = in[i];
    __syncthreads();
    if (threadIdx.x > 0)
      out[i] = 0.5f * (window[threadIdx.x - 1] + window[threadIdx.x]);
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Use instead

Every thread reaches the barrier; only the accesses are guarded:

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  window[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (i < n && threadIdx.x > 0)
    out[i] = 0.5f * (window[threadIdx.x - 1] + window[threadIdx.x]);
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Limits

- A condition on data that a thread reads is not judged.
- There is no fix to press: what the other threads should do at the barrier is the author's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.words import COUNTED

severity = Severity.ERROR


def check(kernel: Kernel) -> Iterator[Finding]:
    for barrier in kernel.barriers:
        if not barrier.divergent or barrier.basis not in COUNTED:
            continue
        condition = barrier.condition
        where = f"`{condition.text}`: " if condition is not None else ""
        yield Finding(
            span=barrier.span,
            message=(
                f"Not every thread of the block reaches this barrier ({where}{barrier.reason}). Move "
                f"{barrier.expression} out of the branch and guard the accesses alone."
            ),
            evidence={
                "basis": barrier.basis.value,
                "reason": barrier.reason,
                "condition": condition.text if condition is not None else None,
                "condition_line": condition.line if condition is not None else None,
            },
            related=(Related(condition, "this condition splits the block"),) if condition is not None else (),
        )
