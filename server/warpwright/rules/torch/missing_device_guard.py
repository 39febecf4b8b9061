"""An operator launches on the current GPU, which need not be that of its tensors.

## Why is this bad?

`CUDA_VISIBLE_DEVICES` hides it until a tensor lies on a second GPU: the kernel is launched on the first one, and
reads memory that is not its own. The call fails with an illegal address, or works slowly through peer access. A guard
makes the tensor's GPU the current one for the length of the call. With one GPU nothing is wrong, so this is
information.

## Example

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void negate_kernel(float *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void negate(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous());
  int64_t n = x.numel();
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("negate", &negate); }
```

## Use instead

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

__global__ void negate_kernel(float *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void negate(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous());
  const c10::cuda::CUDAGuard guard(x.device());
  int64_t n = x.numel();
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("negate", &negate); }
```

## Limits

- Of functions that Python can call and that take tensors; a guard in Python, `with torch.cuda.device(...)`, is not
  seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Function, Unit, is_of_stable_abi
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, free_name, include, top_of
from warpwright.rules.torch._tensors import launches_below

severity = Severity.INFORMATION

_GUARDS = re.compile(r"DeviceGuard|CUDAGuard|device_guard|StreamGuard|cudaSetDevice|DEVICE_GUARD|set_device")


def check_unit(unit: Unit) -> Iterator[Finding]:
    for bound in unit.bound:
        function = bound.function
        if function.source is not unit.source or not function.tensors or not launches_below(unit, function):
            continue
        reached = unit.reached(function)
        if any(_GUARDS.search(each.code) for each in reached):
            continue
        name = bound.registration.name
        yield Finding(
            span=function.name_span,
            message=(
                f"`{name}` launches on the current GPU, not on that of its tensors\n"
                f"Add `{_guard(function, 'guard')}` at the top."
            ),
            evidence={"function": function.name, "tensors": list(function.tensors)},
            kernel=name,
            cure=_cure(function),
        )


def _cure(function: Function) -> Cure | None:
    line = _guard(function, free_name(function.code, "guard", "device_guard"))
    put = top_of(function.source, function.node, line)
    is_stable = is_of_stable_abi(function.source)
    headers = ("torch/csrc/stable/accelerator.h",) if is_stable else ("c10/cuda/CUDAGuard.h", "ATen/cuda/CUDAGuard.h")
    title = f"Guard the GPU of {function.tensors[0]}"
    return cure(title, include(function.source, *headers), put) if put is not None else None


def _guard(function: Function, name: str) -> str:
    tensor = function.tensors[0]
    if is_of_stable_abi(function.source):
        return f"const torch::stable::accelerator::DeviceGuard {name}({tensor}.get_device_index());"
    return f"const c10::cuda::CUDAGuard {name}({tensor}.device());"
