"""An operator writes to an argument, and its schema does not say so.

## Why is this bad?

`torch.compile`, autograd and `functionalization` believe the schema: what is not marked `Tensor(a!)` is not written.
They reorder the call, drop it where its result is not used, and hand it a copy whose changes are lost. Eager runs are
right, compiled ones are not.

## Example

```cuda
#include <torch/extension.h>

torch::Tensor &accumulate(torch::Tensor &sum, const torch::Tensor &x) {
  sum.add_(x);
  return sum;
}

TORCH_LIBRARY(ours, m) { m.def("accumulate(Tensor sum, Tensor x) -> Tensor", &accumulate); }
```

## Use instead

```cuda
#include <torch/extension.h>

torch::Tensor &accumulate(torch::Tensor &sum, const torch::Tensor &x) {
  sum.add_(x);
  return sum;
}

TORCH_LIBRARY(ours, m) { m.def("accumulate(Tensor(a!) sum, Tensor x) -> Tensor(a!)", &accumulate); }
```

## Limits

- Writes by a method whose name ends in `_`, by `mutable_data_ptr`, or by a kernel that stores to the pointer it is
  handed; an operator that gives nothing and says of no argument that it is written. In Python, those of a
  `torch.library.custom_op(..., mutates_args=())`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.schema import SchemaError, read_schema
from warpwright.cuda.extension.script import Function as Script_function
from warpwright.cuda.extension.script import string_of
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, replaced
from warpwright.rules.torch._ops import called, defined, implementations, tensors_in
from warpwright.rules.torch._writes import HARMLESS, writes
from warpwright.syntax.encoding import decoded
from warpwright.syntax.source import Span

severity = Severity.WARNING


def check_unit(unit: Unit) -> Iterator[Finding]:
    if unit.script is not None:
        for function in unit.script.functions:
            for decorator in function.decorator_list:
                if isinstance(decorator, ast.Call) and unit.script.dotted(decorator.func) == "torch.library.custom_op":
                    name = string_of(decorator.args[0] if decorator.args else None)
                    declared = next((k.value for k in decorator.keywords if k.arg == "mutates_args"), None)
                    for argument, at in _written_in_python(function):
                        said = ast.unparse(declared) if declared is not None else ""
                        if argument not in said and "unknown" not in said:
                            wanted = f'("{argument}",)'
                            made = None
                            if isinstance(declared, ast.Tuple | ast.List) and not declared.elts:
                                made = cure(f"Declare {argument}", replaced(unit.script.span(declared), wanted))
                            yield _finding(unit.script.span(at), name, argument, f"mutates_args={wanted}", made)
        return
    for each in defined(unit):
        if "(" not in each.text:
            continue
        try:
            _, parameters = read_schema(each.text)
        except SchemaError:
            continue
        places = [(at, p) for at, p in enumerate(parameters or ()) if p.kind == "tensor"]
        written = [p.name for at, p in places if not p.written and _is_written(unit, each, at)]
        if each.returns == "()" and "!" not in each.text and tensors_in(each) and not written:
            written = [places[0][1].name] if len(places) == 1 else []
        for name in written:
            made = _cure(unit, each, name)
            yield _finding(each.source.span(each.at), called(each), name, f"Tensor(a!) {name}", made)


def _cure(unit: Unit, operator: Registration, name: str) -> Cure | None:
    """The schema with a letter for what is written, also where it is what the operator gives."""
    letter = next(each for each in "abcdefgh" if f"({each}" not in operator.text)
    span = operator.source.span(operator.at)
    text = decoded(operator.source.data[span.start : span.end])
    marked, found = re.subn(rf"\bTensor {re.escape(name)}\b", f"Tensor({letter}!) {name}", text)
    gives = [re.findall(r"\breturn\s+([^;]*?)\s*;", each.function.code) for each in implementations(unit, operator)]
    if operator.returns == "Tensor" and gives and all(each == [name] for each in gives):
        marked = re.sub(r"->\s*Tensor\b", f"-> Tensor({letter}!)", marked)
    return cure(f"Declare that {name} is written", replaced(span, marked)) if found == 1 else None


def _is_written(unit: Unit, operator: Registration, place: int) -> bool:
    for bound in implementations(unit, operator):
        named = bound.function.parameters
        if place < len(named) and writes(unit, bound.function, named[place][0]):
            return True
    return False


def _written_in_python(function: Script_function) -> Iterator[tuple[str, ast.expr]]:
    parameters = {each.arg for each in function.args.args}
    for node in ast.walk(function):
        written: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            is_in_place = method.endswith("_") and not method.startswith("_") and method not in HARMLESS
            written = node.func.value if is_in_place else None
        elif isinstance(node, ast.Subscript | ast.keyword):
            is_store = isinstance(node, ast.keyword) and node.arg == "out"
            is_store |= isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            written = node.value if is_store else None
        if isinstance(written, ast.Name) and written.id in parameters:
            yield written.id, written


def _finding(span: Span, operator: str, argument: str, wanted: str, made: Cure | None) -> Finding:
    return Finding(
        span=span,
        message=f"`{argument}` is written by `{operator}`, whose schema does not say so\nDeclare `{wanted}`.",
        evidence={"operator": operator, "argument": argument},
        kernel=operator.rpartition("::")[2],
        cure=made,
    )
