"""Compiled code calls a function that torch.compile cannot follow.

## Why is this bad?

A function of a PYBIND11_MODULE, and `data_ptr()` in Python, are opaque: the graph ends before the call and a new one
begins after it. What stood around the kernel is no longer fused, and each break costs some ten microseconds in every
call. An operator of a TORCH_LIBRARY stays in the graph.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a) {
  auto y = torch::empty_like(x);
  launch_scale(y, x, a);
  return y;
}

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
  The fix makes an operator of the function in Python; it is offered where the file's C++ is seen to take and give
  tensors and numbers, to write to none, and to give a tensor like one that it takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpwright.cuda.extension.entries import find_entries
from warpwright.cuda.extension.script import Script
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, free_name, replaced
from warpwright.rules.torch._ops import gives_like
from warpwright.rules.torch._scripts import compiled, module_calls
from warpwright.rules.torch._writes import writes
from warpwright.syntax.edits import TextEdit

severity = Severity.WARNING

_MEANT = ("disable", "allow_in_graph", "custom_op", "register_fake")


def check_unit(unit: Unit) -> Iterator[Finding]:
    if unit.script is None:
        return
    for script, function in compiled(unit):
        decorators = " ".join(ast.unparse(each) for each in function.decorator_list)
        if script is not unit.script or any(word in decorators for word in _MEANT):
            continue
        breaks = [
            (ast.unparse(at), at, _cure(unit, script, name, at)) for name, at in module_calls(unit, script, function)
        ]
        for call in script.calls(function):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "data_ptr":
                breaks.append((ast.unparse(call), call.func, None))
        for name, at, made in breaks:
            yield Finding(
                span=script.span(at),
                message=(
                    f"`{name}` breaks the graph of torch.compile in `{function.name}`\n"
                    "Register it with TORCH_LIBRARY and a fake implementation, and call torch.ops."
                ),
                evidence={"call": name, "function": function.name},
                kernel=function.name,
                cure=made,
            )


_TYPES = {"tensor": "torch.Tensor", "int": "int", "float": "float", "bool": "bool"}


def _cure(unit: Unit, script: Script, name: str, at: ast.Attribute) -> Cure | None:
    """An operator of torch.library around the function, in its place, with a fake implementation."""
    bound = [each.function for each in unit.bound if each.registration.is_pybind and each.registration.name == name]
    entries = [each for source in unit.extension for each in find_entries(source) if each.called == name]
    if len(bound) != 1 or len(entries) != 1 or not (like := gives_like(bound[0])) or "torch" not in _imported(script):
        return None
    parameters = entries[0].parameters
    if any(each.kind not in _TYPES or each.optional or each.keyword_only for each in parameters):
        return None
    if any(writes(unit, bound[0], each) for each in bound[0].tensors):
        return None
    like_place = [each for each, _ in bound[0].parameters].index(like)
    around = next(each for each in script.tree.body if each.lineno <= at.lineno <= (each.end_lineno or 0))
    first = min([around.lineno, *(each.lineno for each in getattr(around, "decorator_list", []))])
    start = script.source.line_starts[first - 1]
    space = re.sub(r"\W", "_", ast.unparse(at.value).rpartition(".")[2].lstrip("_") or "extension")
    made = free_name(script.source.text(), f"_{name}", f"_{name}_operator")
    taken = ", ".join(f"{each.name}: {_TYPES[each.kind]}" for each in parameters)
    text = (
        f'@torch.library.custom_op("{space}::{name}", mutates_args=())\n'
        f"def {made}({taken}) -> torch.Tensor:\n"
        f"    return {ast.unparse(at)}({', '.join(each.name for each in parameters)})\n\n\n"
        f"@{made}.register_fake\ndef _({taken}) -> torch.Tensor:\n"
        f"    return torch.empty_like({parameters[like_place].name})\n\n\n"
    )
    return cure(f"Make an operator of {name}", TextEdit(start, start, text), replaced(script.span(at), made))


def _imported(script: Script) -> set[str]:
    return {e.asname or e.name for node in script.tree.body if isinstance(node, ast.Import) for e in node.names}
