"""A name that torch deprecated.

## Why is this bad?

`x.type()` gives a DeprecatedTypeProperties, `x.data<T>()` is a deprecated alias, and names of THC are gone: the file
warns now and does not compile with the next torch.

## Example

```cuda
#include <torch/extension.h>

float *values(torch::Tensor x) {
  AT_CHECK(x.type().is_cuda(), "x must be on a GPU");
  return x.data<float>();
}
```

## Use instead

```cuda
#include <torch/extension.h>

float *values(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on a GPU");
  return x.data_ptr<float>();
}
```

## Limits

- By name, in files that use torch; `.type()` where it is asked something or dispatched on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit, uses_torch
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import include
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.source import Source, Span

severity = Severity.HINT

_GONE = (
    (r"\.\s*type\(\)\s*\.\s*is_cuda\(\)", ".is_cuda()"),
    (r"\.\s*type\(\)\s*\.\s*scalarType\(\)", ".scalar_type()"),
    (r"(?<=\w)\s*\.\s*type\(\)(?=\s*,\s*(?:\"|\w+\s*,\s*\"))", ".scalar_type()"),
    (r"(?<=\w)\.\s*data\s*<\s*[\w:]+\s*>\s*\(\)", ".data_ptr<T>()"),
    (r"\bAT_CHECK\b", "TORCH_CHECK"),
    (r"\bAT_ASSERT(?:M)?\b", "TORCH_INTERNAL_ASSERT"),
    (r"\bAT_ERROR\b", "TORCH_CHECK(false, ...)"),
    (r"(?<=\.)packed_accessor(?=\s*<)", "packed_accessor64"),
    (r"\bTHCState_getCurrentStream\b", "at::cuda::getCurrentCUDAStream"),
    (r"\bTHCudaCheck\b", "C10_CUDA_CHECK"),
    (r"\bTHC(?:State|eilDiv|udaMalloc|udaFree)\b", "at::cuda and c10::cuda"),
    (r"\btorch::autograd::Variable\b", "torch::Tensor"),
    (r"\bc10::optional\b", "std::optional"),
)
_PATTERNS = tuple((re.compile(encoded(pattern)), cure) for pattern, cure in _GONE)


def check_unit(unit: Unit) -> Iterator[Finding]:
    if unit.script is not None or not uses_torch(unit.source):
        return
    for pattern, cure in _PATTERNS:
        for match in pattern.finditer(unit.source.code):
            name = decoded(match[0]).strip()
            yield Finding(
                span=Span(unit.source, match.start(), match.end()),
                message=f"`{name}` is deprecated\nUse {cure}.",
                evidence={"name": name, "instead": cure},
                kernel=name,
                cure=_cure(unit.source, name, match),
            )


def _cure(source: Source, name: str, match: re.Match[bytes]) -> Cure | None:
    """The new name, where it takes what the old one took."""
    if name.endswith(">()") or name.endswith("> ()"):
        new = re.sub(r"\bdata\b", "data_ptr", name, count=1)
    else:
        new = _RENAMED.get("".join(name.split()), "")
    if not new:
        return None
    own = decoded(match[0])
    edits = [TextEdit(match.start(), match.end(), own.replace(name, new))]
    header = include(source, "c10/cuda/CUDAException.h") if new == "C10_CUDA_CHECK" else None
    return Cure(f"Use {new.lstrip('.')}", (*([header] if header is not None else []), *edits))


_RENAMED = {
    ".type().is_cuda()": ".is_cuda()",
    ".type().scalarType()": ".scalar_type()",
    ".type()": ".scalar_type()",
    "AT_CHECK": "TORCH_CHECK",
    "AT_ASSERT": "TORCH_INTERNAL_ASSERT",
    "THCudaCheck": "C10_CUDA_CHECK",
    "torch::autograd::Variable": "torch::Tensor",
    "c10::optional": "std::optional",
}
