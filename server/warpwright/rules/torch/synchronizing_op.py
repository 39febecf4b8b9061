"""An operator waits for the GPU.

## Why is this bad?

Torch hands the GPU work ahead of time. A call that waits for it, or that brings a value to the CPU, ends that: the
GPU is idle from its last kernel until the host has launched the next one, in every call, and no CUDA graph can
capture the operator.

## Example

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void negate_kernel(float *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void launch_negate(torch::Tensor x) {
  int64_t n = x.numel();
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
  cudaDeviceSynchronize();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("negate", &launch_negate); }
```

## Use instead

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void negate_kernel(float *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void launch_negate(torch::Tensor x) {
  int64_t n = x.numel();
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("negate", &launch_negate); }
```

## Limits

- In functions that Python can call and those that they call. A copy of a tensor that is on the CPU already is taken
  to wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Bound, Function, Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, include, replaced
from warpwright.rules.torch._tensors import launches_below
from warpwright.syntax.source import Span

severity = Severity.WARNING

_WAITS = re.compile(
    r"\bcuda(?:Device|Stream|Event)Synchronize\b|\bcudaMemcpy(?=\s*\()|\.\s*item\s*(?:<[^<>]*>)?\s*\(|\.\s*cpu\(|"
    r"\.\s*to\(\s*(?:torch|at|c10)::(?:kCPU|DeviceType::CPU)\s*[,)]|\b(?:torch|at)::cuda::synchronize\b|"
    r"\bgetCurrentCUDAStream\(\)\s*\.\s*synchronize\b|\bstream\s*\.\s*synchronize\b|\.\s*nonzero\(|\b(?:torch|at)::nonzero\b"
)


def check_unit(unit: Unit) -> Iterator[Finding]:
    seen: set[int] = set()
    for bound in unit.bound:
        if not launches_below(unit, bound.function):
            continue
        for function in unit.reached(bound.function):
            if function.source is not unit.source or function.node.id in seen:
                continue
            seen.add(function.node.id)
            for span, match in function.found(_WAITS):
                call = re.sub(r"[\s.(]", "", match[0])
                yield Finding(
                    span=span,
                    message=(
                        f"`{bound.registration.name}` waits for the GPU in each call: `{call}`\n"
                        f"{_NO_WAIT if re.search('ynchronize', call) else 'Leave the value on the GPU.'}"
                    ),
                    evidence={"call": call, "function": function.name},
                    kernel=bound.registration.name,
                    cure=_cure(unit, bound, function, span),
                )


_NO_WAIT = "Leave it out: torch orders work by streams, and C10_CUDA_KERNEL_LAUNCH_CHECK() tells launch errors."
_NEEDS_IT = re.compile(r"\bcudaMemcpy|\bcudaMalloc(?:Host|Managed)|\bprintf\b|pin_memory|kCPU|\.\s*(?:cpu|item)\b")
_STATEMENT = re.compile(rb"cuda(?:Device|Stream)Synchronize\s*\([^();]*(?:\(\s*\))?\)\s*;")


def _cure(unit: Unit, bound: Bound, function: Function, span: Span) -> Cure | None:
    """The check of the launch alone, where nothing that the operator does needs the wait."""
    found = _STATEMENT.match(function.source.data, span.start)
    before = function.source.data[: span.start].rstrip()[-1:]
    if found is None or before not in b"{};" or any(_NEEDS_IT.search(e.code) for e in unit.reached(bound.function)):
        return None
    return cure(
        "Check the launch, do not wait for it",
        include(function.source, "c10/cuda/CUDAException.h"),
        replaced(Span(function.source, span.start, found.end()), "C10_CUDA_KERNEL_LAUNCH_CHECK();"),
    )
