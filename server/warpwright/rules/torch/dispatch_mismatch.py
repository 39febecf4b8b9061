"""A pointer's type is not that which AT_DISPATCH chose, or AT_DISPATCH asks the wrong tensor.

## Why is this bad?

Inside of `AT_DISPATCH_...(x.scalar_type(), ...)` the type `scalar_t` is x's. `x.data_ptr<float>()` there throws for
every other type that the dispatch was written for; and where the dispatch asks a tensor of indices, `scalar_t` is
that of no tensor that the kernel computes with: each call throws.

## Example

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void negate_kernel(scalar_t *y, const scalar_t *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = -x[i];
}

void launch_negate(torch::Tensor y, torch::Tensor x) {
  int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "negate", [&] {
    negate_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<scalar_t>(), reinterpret_cast<scalar_t *>(x.data_ptr<float>()), n);
  });
}
```

## Use instead

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void negate_kernel(scalar_t *y, const scalar_t *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = -x[i];
}

void launch_negate(torch::Tensor y, torch::Tensor x) {
  int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "negate", [&] {
    negate_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), n);
  });
}
```

## Limits

- Of AT_DISPATCH and the extension's own macros that choose a type so; of the tensor that is dispatched on, its copies
  and what is made like it: another tensor may have a type of its own.
  Of a dispatch on the wrong tensor, one whose own pointer is taken as a type of integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.cures import cure, replaced
from warpwright.rules.torch._tensors import POINTER, Dispatch, dispatches, same_type

severity = Severity.WARNING

_INTEGER = re.compile(r"int|long|bool|short|char")
_OF_SCALAR = ("opmath_t", "acc_t", "accscalar_t", "void", "T")
"""Types that code derives from scalar_t."""


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in unit.here:
        every = list(dispatches(unit, function))
        for dispatch in every:
            yield from _of(dispatch, {each.scalar for each in every if each is not dispatch})


def _of(dispatch: Dispatch, chosen: set[str]) -> Iterator[Finding]:
    """`chosen` are the types that other dispatches of the function choose."""
    function = dispatch.function
    of_type = same_type(function, dispatch.on)
    pointers = list(dispatch.pointers())
    scalar = {name for _, name, kind in pointers if kind == dispatch.scalar}
    derived = {*_OF_SCALAR, *chosen, *re.findall(r"\busing\s+(\w+)\s*=", dispatch.source.node_code(dispatch.body))}
    fixed = {m[1]: m[3] for _, m in function.found(POINTER) if m[3] and m[3] not in (dispatch.scalar, *derived)}
    if scalar and not scalar & of_type and _INTEGER.search(fixed.get(dispatch.on, "")):
        used = next(name for _, name, kind in pointers if kind == dispatch.scalar)
        yield Finding(
            span=dispatch.on_span,
            message=(
                f"`{dispatch.on}` is dispatched on, but `{dispatch.scalar}` is the type of `{used}`: `{dispatch.on}` "
                f"holds {fixed[dispatch.on]}\nDispatch on {used}.scalar_type()."
            ),
            evidence={"dispatched": dispatch.on, "used": used, "type": fixed[dispatch.on]},
            kernel=function.name,
            cure=cure(f"Dispatch on {used}", replaced(dispatch.on_span, used)),
        )
        return
    for span, name, kind in pointers:
        if name in of_type and kind != dispatch.scalar and kind not in derived:
            yield Finding(
                span=span,
                message=(
                    f"`{name}` is read as {kind} where `{dispatch.macro}` dispatches on its type\n"
                    f"Use {name}.data_ptr<{dispatch.scalar}>()."
                ),
                evidence={"tensor": name, "type": kind, "dispatched": dispatch.on},
                cure=cure(f"Read {name} as {dispatch.scalar}", replaced(span, dispatch.scalar)),
                related=(Related(dispatch.on_span, "dispatched here"),),
                kernel=function.name,
            )
