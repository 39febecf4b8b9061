"""A tensor's pointer is cast to a vector type, and nothing says that its address and size allow that.

## Why is this bad?

A tensor starts where its storage says: `x[1:]` or a row of odd length is aligned to one element. A `float4` load from
there faults with a misaligned address, and a row that is not a multiple of four is read past its end.

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

- Casts in host code of `data_ptr` to the vector types of CUDA, and to structs that are declared with `alignas` or
  `__align__`; any mention of `uintptr_t` or of alignment in the function counts as a check. The fix checks the
  address; a scalar path for others is yours to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Function, Unit, uses_torch
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, include, line_before
from warpwright.rules.host._statements import statement_of
from warpwright.syntax.nodes import node_at
from warpwright.syntax.source import Span

severity = Severity.WARNING

_WIDE = r"(?:u?(?:int|long|longlong|short|char)|float|double|half|__half|__nv_bfloat16)[2348]|__nv_bfloat162|__half2"
_STRUCT = re.compile(r"\b(?:struct|union)\s+(?:alignas|__align__)\s*\((?:[^(){};]|\([^()]*\))*\)\s*(\w+)")
_OF_TORCH = "aligned_vector"
_CAST = (
    r"(?:reinterpret_cast<\s*(?:const\s+)?(?P<a>{0})\s*(?:const\s*)?\*\s*>\s*\(|"
    r"\(\s*(?:const\s+)?(?P<b>{0})\s*(?:const\s*)?\*\s*\)\s*)(?P<x>\w+)(?P<own>\s*\.\s*\w*data_ptr\b)?"
)
_HOLDS = r"\b{0}\s*=\s*[^;]*data_ptr\b"
_CHECKED = re.compile(r"uintptr_t|align(?!as\b|__)", re.IGNORECASE)


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not uses_torch(unit.source):
        return
    structs = {name for each in (*unit.texts, unit.source) for name in _STRUCT.findall(each.code_text())} | {_OF_TORCH}
    named = "|".join(map(re.escape, sorted(structs)))
    cast = re.compile(_CAST.format(rf"(?:{_WIDE})|(?:\w+::)*(?:{named})\s*<[^<>;]*>|(?:\w+::)*(?:{named})"))
    checked = re.compile(rf"\b(?:{named})\b")
    for function in unit.here:
        if _CHECKED.search(checked.sub("", function.code)):
            continue
        for span, match in function.found(cast):
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
                    cure=_cure(function, span, name, wide, bool(match["own"])),
                )


_BYTES = {"char": 1, "short": 2, "half": 2, "bfloat16": 2, "longlong": 8, "long": 8, "double": 8}


def _cure(function: Function, span: Span, name: str, wide: str, is_tensor: bool) -> Cure | None:
    """A check of the address, which says what is wrong in place of the launch that fails."""
    node = node_at(span.source.root, span.start, span.end)
    statement = statement_of(node) if node is not None else None
    if statement is None:
        return None
    plain = wide.removeprefix("__nv_").removeprefix("__").removeprefix("u")
    built_in = re.fullmatch(_WIDE, wide) is not None
    size = str(_BYTES.get(plain[:-1], 4) * int(plain[-1])) if built_in else f"alignof({wide})"
    typed = re.match(r"\s*<[^<>()]*>", span.source.code_text(span.end, statement.end_byte))
    pointer = f"{name}.data_ptr{typed[0].strip() if typed else ''}()" if is_tensor else name
    said = f'"{name} must be aligned to {size} bytes"' if built_in else f'"{name} must be aligned for {wide}"'
    text = f"TORCH_CHECK((reinterpret_cast<uintptr_t>({pointer}) % {size} == 0), {said});"
    put = line_before(function.source, statement, text)
    return cure("Check the address", include(span.source, "cstdint"), put) if put is not None else None
