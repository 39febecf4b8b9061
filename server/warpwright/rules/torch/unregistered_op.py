"""A name of torch.ops, or of an extension's module, that nothing registers.

## Why is this bad?

The name is looked up when it is used: `torch.ops.ours.scal(x)` raises an AttributeError in the first call, and where
an `except` stands around it the program takes the slow path for ever. An implementation of a name that no schema
defines ends the import, or is never called.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scaled", &scale); }
```

## Use instead

```cuda
#include <torch/extension.h>

torch::Tensor scale(torch::Tensor x, double a);

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Autograd, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Meta, m) { m.impl("scale", &scale); }
```

## Limits

- In Python, `torch.ops.ours.name`, its overloads, and torch.library's registrations of `"ours::name"`, where the
  package has a TORCH_LIBRARY of that namespace, and functions of a module that setup.py or `load` builds from its
  only PYBIND11_MODULE. Where no registered name is like it, there is no fix to press.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from warpwright.cuda.extension.script import string_of
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.cures import cure, renamed
from warpwright.rules.torch._scripts import module_calls
from warpwright.syntax.source import Span

severity = Severity.ERROR

_LITERAL = re.compile(r"\"(\w+)\"")
"""Classes, enumerations and attributes of a module are bound by their names, too."""
_OF_PACKET = ("op", "overloads", "schemas")
_DEFINE = ("define", "custom_op", "triton_op", "def")


def check_unit(unit: Unit) -> Iterator[Finding]:
    known = {(each.space, each.name) for each in unit.registrations if each.method == "def" and not each.is_pybind}
    spaces = {space for space, _ in known}
    defined = {
        (op.partition("::")[0], op.partition("::")[2].partition(".")[0])
        for each in unit.scripts
        for what, op, _ in each.registered
        if what in _DEFINE
    }
    known |= defined
    for impl in unit.registrations:
        if impl.method == "impl" and impl.source is unit.source and impl.space in spaces:
            yield from _unless_known(impl.source.span(impl.at), impl.space, impl.name, known)
    script = unit.script
    if script is None:
        return
    for space, name, at in script.ops:
        if space in spaces:
            yield from _unless_known(script.span(at), space, name, known)
    overloads: dict[tuple[str, str], set[str]] = {}
    for each in unit.registrations:
        if each.method == "def" and not each.is_pybind:
            overloads.setdefault((each.space, each.name), set()).add(each.overload or "default")
    for space, name, overload, at in script.overloads:
        listed = overloads.get((space, name), set())
        if listed and (space, name) not in defined and not overload.startswith("_") and overload not in _OF_PACKET:
            yield from _unless_known(
                script.span(at), f"{space}::{name}", overload, ((f"{space}::{name}", each) for each in listed)
            )
    for _, op, call in script.registered:
        space, _, name = op.partition("::")
        at_name = next((each for each in call.args[:2] if string_of(each)), None)
        if space in spaces and at_name is not None:
            yield from _unless_known(script.span(at_name), space, name.partition(".")[0], known)
    modules = {each.source.path for each in unit.registrations if each.is_pybind}
    bound = {("", each.name) for each in unit.registrations if each.is_pybind}
    bound |= {("", name) for each in unit.extension if each.path in modules for name in _LITERAL.findall(each.text())}
    if len(modules) == 1:
        for name, at in module_calls(unit, script):
            yield from _unless_known(script.span(at), "", name, bound)


def _unless_known(span: Span, space: str, name: str, known: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    names = sorted(each for of, each in known if of == space)
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1)
    said = f"{space}{'.' if '::' in space else '::'}{name}" if space else name
    yield Finding(
        span=span,
        message=(
            f"`{said}` is registered nowhere in this package\n"
            + (f"Did you mean `{near[0]}`?" if near else f"There is {', '.join(names[:6])}.")
        ),
        evidence={"operator": said, "registered": names},
        kernel=name,
        cure=cure(f"Call {near[0]}", renamed(span, name, near[0])) if near else None,
    )
