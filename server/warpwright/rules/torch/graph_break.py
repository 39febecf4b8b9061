"""Compiled code calls a function that torch.compile cannot follow.

## Why is this bad?

A function of a PYBIND11_MODULE, and `data_ptr()` in Python, are opaque: the graph ends before the call and a new one
begins after it. What stood around the kernel is no longer fused, and each break costs some ten microseconds in every
call. An operator of a TORCH_LIBRARY stays in the graph.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
```

```python
import torch
from torch.utils.cpp_extension import load

ours = load(name="ours", sources=["ours.cu"])


@torch.compile
def step(x):
    return torch.relu(ours.scale(x, 2.0))
```

## Use instead

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);
torch::Tensor scale_meta(torch::Tensor x, double a);

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Meta, m) { m.impl("scale", &scale_meta); }
TORCH_LIBRARY_IMPL(ours, Autograd, m) { m.impl("scale", &scale); }
```

```python
import torch
from torch.utils.cpp_extension import load

load(name="ours", sources=["ours.cu"], is_python_module=False)


@torch.compile
def step(x):
    return torch.relu(torch.ops.ours.scale(x, 2.0))
```

## Limits

- In functions that torch.compile is put on or handed in the package, and those that these call by name; of a module
  that it is handed, in each `forward`. `torch.compiler.disable` is a break that is meant.
  There is no fix to press.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.torch._scripts import compiled, module_calls

severity = Severity.WARNING

_MEANT = ("disable", "allow_in_graph", "custom_op", "register_fake")


def check_unit(unit: Unit) -> Iterator[Finding]:
    if unit.script is None:
        return
    for script, function in compiled(unit):
        decorators = " ".join(ast.unparse(each) for each in function.decorator_list)
        if script is not unit.script or any(word in decorators for word in _MEANT):
            continue
        breaks = [(ast.unparse(at), at) for _, at in module_calls(unit, script, function)]
        for call in script.calls(function):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "data_ptr":
                breaks.append((ast.unparse(call), call.func))
        for name, at in breaks:
            yield Finding(
                span=script.span(at),
                message=(
                    f"`{name}` breaks the graph of torch.compile in `{function.name}`\n"
                    "Register it with TORCH_LIBRARY and a fake implementation, and call torch.ops."
                ),
                evidence={"call": name, "function": function.name},
                kernel=function.name,
            )
