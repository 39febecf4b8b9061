"""A tensor's pointer reaches a kernel, and nothing looks at its device, layout, type or size first.

## Why is this bad?

A pointer says nothing of the tensor that it came from. A tensor on the CPU ends in an illegal address, a transposed
or sliced one gives wrong numbers without an error, one of another type is read as garbage, and one that is shorter is
read past its end. Torch's own operators check each and say which argument is wrong.

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
  const c10::cuda::CUDAGuard guard(x.device());
  int64_t n = x.numel();
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("negate", &negate); }
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

void negate(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  const c10::cuda::CUDAGuard guard(x.device());
  int64_t n = x.numel();
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("negate", &negate); }
```

## Limits

- Tensors of functions that Python can call, followed into the functions of the extension that they are passed to. Any
  mention of a property counts as a check of it, a check by a macro that is not seen as one of all of them, and
  `TORCH_LIBRARY_IMPL(..., CUDA, ...)` as one of the device. A size alone is information.
  What is fixed is the device and the layout; a type or a size would be a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Bound, Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, top_of
from warpwright.rules.torch._callers import seen_to
from warpwright.rules.torch._tensors import flow, launches_below

severity = Severity.WARNING

_CURES = {
    "device": "TORCH_CHECK({0}.is_cuda())",
    "contiguity": "TORCH_CHECK({0}.is_contiguous())",
    "dtype": "TORCH_CHECK({0}.scalar_type() == ...)",
    "size": "TORCH_CHECK on {0}.sizes()",
}


def check_unit(unit: Unit) -> Iterator[Finding]:
    for bound in unit.bound:
        is_here = any(each.source is unit.source for each in unit.reached(bound.function))
        if is_here and launches_below(unit, bound.function):
            yield from _of(unit, bound)


def _of(unit: Unit, bound: Bound) -> Iterator[Finding]:
    tensors = bound.function.tensors
    flows = {name: flow(unit, bound.function, name) for name in tensors}
    with_pointers = [name for name in tensors if flows[name].uses]
    for name in with_pointers:
        followed = flows[name]
        wanted = ["contiguity"]
        if bound.registration.key != "CUDA":
            wanted.insert(0, "device")
        if any(not use.type or use.type == "void" for use in followed.uses) and not _is_dispatched(bound, name):
            wanted.append("dtype")
        if len(with_pointers) > 1:
            wanted.append("size")
        missing = [aspect for aspect in wanted if aspect not in followed.looked_at]
        use = next((each for each in followed.uses if each.span.source is unit.source), None)
        if missing and use is not None:
            place = [each for each, _ in bound.function.parameters].index(name)
            seen = seen_to(unit, bound.registration, place)
            missing = [aspect for aspect in missing if aspect not in seen]
        if not missing or use is None:
            continue
        yield Finding(
            span=use.span,
            message=(
                f"`{name}` of `{bound.registration.name}` reaches a kernel with its {' and '.join(missing)} unchecked\n"
                f"Add {', '.join(_CURES[aspect].format(name) for aspect in missing)}."
            ),
            evidence={"tensor": name, "unchecked": missing, "function": bound.function.name},
            severity=Severity.INFORMATION if missing == ["size"] else None,
            kernel=bound.registration.name,
            cure=_cure(unit, bound, name, missing),
        )


def _cure(unit: Unit, bound: Bound, name: str, missing: list[str]) -> Cure | None:
    """Checks that ask for no more than the kernel needs; none where a type or a size would have to be guessed."""
    function = bound.function
    if function.source is not unit.source or not {"device", "contiguity"}.issuperset(missing):
        return None
    texts = {
        "device": f'TORCH_CHECK({name}.is_cuda(), "{name} must be on a GPU");',
        "contiguity": f'TORCH_CHECK({name}.is_contiguous(), "{name} must be contiguous");',
    }
    return cure(f"Check {name}", *(top_of(unit.source, function.node, texts[aspect]) for aspect in missing))


def _is_dispatched(bound: Bound, name: str) -> bool:
    return re.search(rf"DISPATCH\w*\([^;{{]*\b{re.escape(name)}\b", bound.function.code) is not None
