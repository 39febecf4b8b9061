"""A tensor's pointer is cast to a vector type, and nothing says that its address and size allow that.

## Why is this bad?

A tensor starts where its storage says: `x[1:]` or a row of odd length is aligned to one element. A `float4` load from
there faults with a misaligned address, and a row that is no multiple of four is read past its end.

## Example

```cuda
#include <torch/extension.h>

__global__ void negate_kernel(float4 *x, int64_t n);

void launch_negate(torch::Tensor x) {
  int64_t n = x.numel() / 4;
  auto *wide = reinterpret_cast<float4 *>(x.data_ptr<float>());
  negate_kernel<<<(n + 255) / 256, 256>>>(wide, n);
}
```

## Use instead

```cuda
#include <torch/extension.h>

__global__ void negate_kernel(float4 *x, int64_t n);

void launch_negate(torch::Tensor x) {
  TORCH_CHECK(x.numel() % 4 == 0 && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0, "x must be aligned");
  int64_t n = x.numel() / 4;
  auto *wide = reinterpret_cast<float4 *>(x.data_ptr<float>());
  negate_kernel<<<(n + 255) / 256, 256>>>(wide, n);
}
```

## Limits

- Casts in host code of `data_ptr` to the vector types of CUDA; any mention of `uintptr_t` or of alignment in the
  function counts as a check.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit, uses_torch
from warpwright.rules.base import Finding, Severity

severity = Severity.WARNING

_WIDE = r"(?:u?(?:int|long|longlong|short|char)|float|double|half|__half|__nv_bfloat16)[2348]|__nv_bfloat162|__half2"
_CAST = re.compile(
    rf"(?:reinterpret_cast<\s*(?:const\s+)?(?P<a>{_WIDE})\s*(?:const\s*)?\*\s*>\s*\(|"
    rf"\(\s*(?:const\s+)?(?P<b>{_WIDE})\s*(?:const\s*)?\*\s*\)\s*)(?P<x>\w+)(?P<own>\s*\.\s*\w*data_ptr\b)?"
)
_HOLDS = r"\b{0}\s*=\s*[^;]*\bdata_ptr\b"
_CHECKED = re.compile(r"uintptr_t|align", re.IGNORECASE)


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not uses_torch(unit.source):
        return
    for function in unit.here:
        if _CHECKED.search(function.code):
            continue
        for span, match in function.found(_CAST):
            wide, name = match["a"] or match["b"], match["x"]
            if match["own"] or re.search(_HOLDS.format(name), function.code):
                yield Finding(
                    span=span,
                    message=(
                        f"`{name}` is assumed to be aligned for {wide}: nothing checks its address\n"
                        "Test the address and the size, and keep a scalar path beside it."
                    ),
                    evidence={"tensor": name, "type": wide},
                    kernel=function.name,
                )
