"""An operator has no fake (Meta) implementation.

## Why is this bad?

`torch.compile` and `torch.export` run an operator on tensors without data, to learn the shapes and types of what it
gives. An operator without a fake implementation ends there, with an error or a graph break around the very kernel
that was to be fast.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Autograd, m) { m.impl("scale", &scale); }
```

## Use instead

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);
torch::Tensor scale_meta(torch::Tensor x, double a) { return torch::empty_like(x); }

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Autograd, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Meta, m) { m.impl("scale", &scale_meta); }
```

## Limits

- One that gives nothing needs none. A warning where the package uses torch.compile or torch.export. Registrations are
  looked for in the C++ and Python of the package, for `torch.library.custom_op` in the same file.
  There is no fix to press.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpwright.cuda.extension.script import string_of
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.torch._ops import COMPOSITE, called, defined
from warpwright.rules.torch._scripts import uses_compile
from warpwright.syntax.source import Span

severity = Severity.INFORMATION

_FAKE = COMPOSITE | {"Meta", "CompositeExplicitAutograd", "register_fake", "impl_abstract", "register_meta"}


def check_unit(unit: Unit) -> Iterator[Finding]:
    grave = Severity.WARNING if uses_compile(unit) else None
    if unit.script is not None:
        for function in unit.script.functions:
            for decorator in function.decorator_list:
                if (
                    not isinstance(decorator, ast.Call)
                    or unit.script.dotted(decorator.func) != "torch.library.custom_op"
                ):
                    continue
                name = string_of(decorator.args[0] if decorator.args else None)
                registered = {what for what, op, _ in unit.script.registered if op == name}
                none = isinstance(function.returns, ast.Constant) and function.returns.value is None
                if name and not none and not registered & _FAKE:
                    yield _finding(unit.script.span(decorator), name, grave)
        return
    for each in defined(unit):
        if each.returns != "()" and not unit.registered(each.space, each.name) & _FAKE:
            yield _finding(each.source.span(each.at), called(each), grave)


def _finding(span: Span, name: str, grave: Severity | None) -> Finding:
    return Finding(
        span=span,
        message=(
            f"`{name}` has no fake implementation: torch.compile and torch.export end there\n"
            f'Add one with @torch.library.register_fake("{name}").'
        ),
        evidence={"operator": name},
        severity=grave,
        kernel=name.rpartition("::")[2],
    )
