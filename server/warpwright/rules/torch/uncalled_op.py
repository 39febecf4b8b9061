"""An operator is defined, and the Python side never calls it.

## Why is this bad?

The kernel was written and built, and the model runs without it: training gets no faster, and nobody is told.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);
torch::Tensor shift(torch::Tensor x, double a);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale", &scale);
  m.def("shift", &shift);
}
```

```python
from torch.utils.cpp_extension import load

ours = load(name="ours", sources=["ours.cu"])


def scaled(x):
    return ours.scale(x, 2.0)
```

## Use instead

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);
torch::Tensor shift(torch::Tensor x, double a);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale", &scale);
  m.def("shift", &shift);
}
```

```python
from torch.utils.cpp_extension import load

ours = load(name="ours", sources=["ours.cu"])


def scaled(x):
    return ours.shift(ours.scale(x, 2.0), 1.0)
```

## Limits

- Where the package's Python uses another operator of the same extension; any mention of the name there, in C++ as a
  string, or in an implementation of another counts as a call.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.torch._ops import called
from warpwright.syntax.encoding import encoded

severity = Severity.INFORMATION


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not unit.scripts:
        return
    uses = {name for each in unit.scripts for name in re.findall(r"\.(\w+)\b", each.source.text())}
    mentioned = uses | {name for each in unit.scripts for name in re.findall(r"[\"'](\w+)[\"']", each.source.text())}
    own = [each for each in unit.registrations if each.method == "def"]
    if not any(each.name in uses for each in own):
        return
    for each in own:
        if each.source is unit.source and each.name not in mentioned and not _is_found_in_cpp(unit, called(each)):
            yield Finding(
                span=each.source.span(each.at),
                message=f"`{called(each)}` is never called by the package's Python\nCall it, or delete it.",
                evidence={"operator": called(each), "scripts": len(unit.scripts)},
                kernel=each.name,
            )


def _is_found_in_cpp(unit: Unit, name: str) -> bool:
    return any(encoded(f'"{name}"') in source.data for source in unit.extension) and "::" in name
