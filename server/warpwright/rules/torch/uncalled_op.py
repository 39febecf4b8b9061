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

- Where the package's Python uses another operator of the same extension, or registers something for its namespace;
  any mention of the name there, in C++ as a string, or in an implementation of another counts as a call. The fix takes
  the binding away; to call it is yours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure
from warpwright.rules.torch._ops import called, is_asked_for_by_another_name
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import enclosing
from warpwright.syntax.source import Source

severity = Severity.INFORMATION


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not unit.scripts:
        return
    uses = {name for each in unit.scripts for name in re.findall(r"\.(\w+)\b", each.source.text())}
    mentioned = uses | {name for each in unit.scripts for name in re.findall(r"[\"'](\w+)[\"']", each.source.text())}
    own = [each for each in unit.registrations if each.method == "def"]
    registered = {op.partition("::")[0] for script in unit.scripts for _, op, _ in script.registered}
    if not any(each.name in uses or (each.space and each.space in registered) for each in own):
        return
    for each in own:
        is_used = each.name in mentioned or _is_found_in_cpp(unit, called(each))
        if each.source is unit.source and not is_used and not is_asked_for_by_another_name(unit, each):
            yield Finding(
                span=each.source.span(each.at),
                message=f"`{called(each)}` is never called by the package's Python\nCall it, or delete it.",
                evidence={"operator": called(each), "scripts": len(unit.scripts)},
                kernel=each.name,
                cure=_cure(unit, each),
            )


def _cure(unit: Unit, operator: Registration) -> Cure | None:
    """The file without the lines that bind it; none where others do so, or where it shares a statement with another."""
    edits = []
    for each in unit.registrations:
        if (each.space, each.name) == (operator.space, operator.name):
            statement = enclosing(each.at, "expression_statement")
            if each.source is not unit.source or statement is None or not _is_whole_lines(each.source, statement):
                return None
            start = each.source.data.rfind(b"\n", 0, statement.start_byte) + 1
            edits.append(TextEdit(start, each.source.data.find(b"\n", statement.end_byte) + 1, ""))
    in_python = any(
        op.partition(".")[0] == called(operator) for script in unit.scripts for _, op, _ in script.registered
    )
    return cure(f"Delete the binding of {operator.name}", *edits) if not in_python else None


def _is_whole_lines(source: Source, statement: Node) -> bool:
    """Whether a statement calls one method once, and nothing else stands on its lines."""
    code = source.node_code(statement)
    before = source.data[source.data.rfind(b"\n", 0, statement.start_byte) + 1 : statement.start_byte]
    behind = source.data[statement.end_byte :].partition(b"\n")
    return (
        not (before + behind[0]).strip() and bool(behind[1]) and len(re.findall(r"\.\s*(?:def|impl)\s*\(", code)) == 1
    )


def _is_found_in_cpp(unit: Unit, name: str) -> bool:
    return any(encoded(f'"{name}"') in source.data for source in unit.extension) and "::" in name
