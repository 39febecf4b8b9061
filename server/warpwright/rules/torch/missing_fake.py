"""An operator has no fake (Meta) implementation.

## Why is this bad?

`torch.compile` and `torch.export` run an operator on tensors without data, to learn the shapes and types of what it
gives. An operator without a fake implementation ends there, with an error or a graph break around the very kernel
that was to be fast.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a) {
  auto y = torch::empty_like(x);
  launch_scale(y, x, a);
  return y;
}

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
  looked for in the C++ and Python of the package; one for a name that a script computes counts for all.
  The fix writes that of an operator that gives a tensor made by `empty_like` or `zeros_like`; what shape others give,
  only you know.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.script import Function as Script_function
from warpwright.cuda.extension.script import Script, string_of
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import at_end, cure, free_name
from warpwright.rules.torch._ops import COMPOSITE, called, defined, gives_like, implementations
from warpwright.rules.torch._scripts import uses_compile
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import function_declarator
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
                space, _, last = name.partition("::")
                registered = unit.registered(space, last)
                none = isinstance(function.returns, ast.Constant) and function.returns.value is None
                if name and not none and not registered & _FAKE:
                    made = _python_cure(unit.script, function, name)
                    yield _finding(unit.script.span(decorator), name, grave, made)
        for what, op, call in unit.script.registered:
            space, _, name = op.partition("::")
            schema = next((text for each in call.args if "->" in (text := string_of(each))), "")
            gives = schema.rpartition("->")[2].strip()
            if what == "define" and "Tensor" in gives and not unit.registered(space, name.partition(".")[0]) & _FAKE:
                yield _finding(unit.script.span(call), op, grave, None)
        return
    for each in defined(unit):
        if each.returns != "()" and not unit.registered(each.space, each.name) & _FAKE:
            yield _finding(each.source.span(each.at), called(each), grave, _cure(unit, each))


def _finding(span: Span, name: str, grave: Severity | None, made: Cure | None) -> Finding:
    return Finding(
        span=span,
        message=(
            f"`{name}` has no fake implementation: torch.compile and torch.export end there\n"
            f'Add one with @torch.library.register_fake("{name}").'
        ),
        evidence={"operator": name},
        severity=grave,
        kernel=name.rpartition("::")[2],
        cure=made,
    )


_TITLE = "Write its fake implementation"


def _cure(unit: Unit, operator: Registration) -> Cure | None:
    """A fake implementation of one that gives a tensor like an argument, with the parameters of the real one."""
    bound = next((each for each in implementations(unit, operator) if each.function.source is unit.source), None)
    if bound is None or operator.returns != "Tensor" or not operator.space:
        return None
    function, like = bound.function, gives_like(bound.function)
    declarator = function_declarator(function.node)
    parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
    if parameters is None or not like:
        return None
    name = free_name(function.source.text(), f"{function.name}_fake", f"{function.name}_without_data")
    return cure(
        _TITLE,
        at_end(
            function.source,
            f"at::Tensor {name}{function.source.node_code(parameters)} {{ return at::empty_like({like}); }}\n\n"
            f'TORCH_LIBRARY_IMPL({operator.space}, Meta, m) {{ m.impl("{operator.name}", &{name}); }}',
        ),
    )


def _python_cure(script: Script, function: Script_function, name: str) -> Cure | None:
    made = {
        node.targets[0].id: node.value.args[0].id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and script.dotted(node.value.func) in ("torch.empty_like", "torch.zeros_like")
        and len(node.value.args) == 1
        and isinstance(node.value.args[0], ast.Name)
    }
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    given = {made.get(each.id, "") if isinstance(each, ast.Name) else "" for each in returned}
    like = next(iter(given), "")
    if len(given) != 1 or like not in {each.arg for each in function.args.args} or function.end_lineno is None:
        return None
    starts = script.source.line_starts
    at = starts[function.end_lineno] if function.end_lineno < len(starts) else len(script.source.data)
    gap = "" if script.source.data[:at].endswith(b"\n") else "\n"
    text = (
        f'{gap}\n\n@torch.library.register_fake("{name}")\n'
        f"def _({ast.unparse(function.args)}):\n    return torch.empty_like({like})\n"
    )
    return cure(_TITLE, TextEdit(at, at, text))
