"""An operator has a forward and no backward.

## Why is this bad?

Torch cannot differentiate a kernel. An operator without an Autograd registration gives outputs that do not require
gradients: training goes on, the parameters in front of it stay as they were, and nothing is said before `backward()`,
if at all.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
```

## Use instead

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);
torch::Tensor scale_autograd(torch::Tensor x, double a);

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Autograd, m) { m.impl("scale", &scale_autograd); }
```

## Limits

- Also found in Python: a `torch.autograd.Function` without `backward`, which is a warning. An operator that a
  Function or a backward of the package calls, or whose name says that it is a backward, is left out; so is one that
  writes to its arguments, or gives no tensor, or whole numbers alone. Whether an operator is differentiable is not
  known: this is information. The fix makes `backward()` raise; the derivative is yours to write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.script import Script
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import at_end, cure, include
from warpwright.rules.torch._ops import (
    COMPOSITE,
    OF_BACKWARD,
    called,
    defined,
    gives_integers,
    gives_tensor,
    is_asked_for_by_another_name,
    tensors_in,
)
from warpwright.rules.torch._scripts import module_calls

severity = Severity.INFORMATION


def check_unit(unit: Unit) -> Iterator[Finding]:
    if unit.script is not None:
        yield from _of_functions(unit.script)
        return
    bound = [each for each in unit.registrations if each.source is unit.source and each.is_pybind]
    operators = [*defined(unit), *(each for each in bound if each.name.lower().endswith(("forward", "fwd")))]
    with_backward = any(OF_BACKWARD.search(each.name) for each in unit.registrations)
    for each in operators:
        if OF_BACKWARD.search(each.name) or not tensors_in(each) or not gives_tensor(each) or "!" in each.text:
            continue
        if (with_backward and each.is_pybind) or _is_differentiated(unit, each):
            continue
        if gives_integers(unit, each) or is_asked_for_by_another_name(unit, each):
            continue
        yield Finding(
            span=each.source.span(each.at),
            message=(
                f"`{called(each)}` has no backward: gradients end there\n"
                "Register one with torch.library.register_autograd, or call it in a torch.autograd.Function."
            ),
            evidence={"operator": called(each)},
            kernel=each.name,
            cure=_cure(each),
        )


def _cure(operator: Registration) -> Cure | None:
    """What raises where a gradient is asked for, in place of none that nobody misses."""
    if operator.is_pybind or not operator.space:
        return None
    return cure(
        "Raise where a gradient is asked for",
        include(operator.source, "torch/csrc/autograd/autograd_not_implemented_fallback.h"),
        at_end(
            operator.source,
            f"TORCH_LIBRARY_IMPL({operator.space}, Autograd, m) {{\n"
            f'    m.impl("{operator.name}", torch::autograd::autogradNotImplementedFallback());\n}}',
        ),
    )


def _of_functions(script: Script) -> Iterator[Finding]:
    for each in script.autograd_functions:
        names = {node.name for node in each.body if isinstance(node, ast.FunctionDef)}
        names |= {t.id for n in each.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        if "forward" in names and not {"backward", "vjp"} & names:
            yield Finding(
                span=script.span(each, each.bases[0]),
                message=f"`{each.name}` has a forward and no backward\nAdd a static method backward(ctx, *grads).",
                evidence={"class": each.name, "line": each.lineno},
                severity=Severity.WARNING,
                kernel=each.name,
            )


def _is_differentiated(unit: Unit, operator: Registration) -> bool:
    registered = unit.registered(operator.space, operator.name)
    if any(each.startswith("Autograd") or each in COMPOSITE or each == "register_autograd" for each in registered):
        return True
    for script in unit.scripts:
        within: list[ast.AST] = [*script.autograd_functions]
        within += [each for each in script.functions if OF_BACKWARD.search(each.name) or "backward" in each.name]
        called_by_name = {
            call.func.id for part in within for call in script.calls(part) if isinstance(call.func, ast.Name)
        }
        within += [each for each in script.functions if each.name in called_by_name]
        for part in within:
            inside = {id(node) for node in ast.walk(part)}
            if any((s, n) == (operator.space, operator.name) and id(at) in inside for s, n, at in script.ops):
                return True
            if operator.is_pybind and any(name == operator.name for name, _ in module_calls(unit, script, part)):
                return True
    return False
