"""A dispatch over floating types leaves out half or bfloat16.

## Why is this bad?

Models are trained and served in half and bfloat16. `AT_DISPATCH_FLOATING_TYPES` has float and double alone: under
autocast or after `model.half()` the operator throws "not implemented for 'Half'", and whoever catches that falls back
to a slow path.

## Example

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void negate_kernel(scalar_t *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void launch_negate(torch::Tensor x) {
  int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "negate", [&] {
    negate_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<scalar_t>(), n);
  });
}
```

## Use instead

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void negate_kernel(scalar_t *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void launch_negate(torch::Tensor x) {
  int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "negate", [&] {
    negate_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<scalar_t>(), n);
  });
}
```

## Limits

- The macros of ATen/Dispatch.h over floating types, and of the extension's own: macros, a `switch`, and a chain of `if`
  that refuses every other type. Whether the kernel is right in half, such as a long sum, is not looked at; where it has
  atomics, which half needs other code for, and in a macro of the extension's own, there is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.cuda.walks import nodes_below
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure
from warpwright.rules.torch._tensors import Dispatch, dispatches
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import parent_of, uncommented

severity = Severity.INFORMATION

_CASE_TYPES = {
    "Float": "Float", "Float32": "Float", "Half": "Half", "Float16": "Half", "BFloat16": "BFloat16",
}  # fmt: skip

_COMPARED = re.compile(r"\(\s*(\w+)\s*\.\s*(?:scalar_type|dtype)\(\)\s*==\s*(?:\w+::)*k?(\w+)\s*\)")
_LEAVES_OUT = {
    "AT_DISPATCH_FLOATING_TYPES": ("Half", "BFloat16"),
    "AT_DISPATCH_FLOATING_TYPES_AND_HALF": ("BFloat16",),
    "AT_DISPATCH_ALL_TYPES": ("Half", "BFloat16"),
    "AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES": ("Half", "BFloat16"),
    "AT_DISPATCH_FLOATING_TYPES_AND": ("Half", "BFloat16"),
    "AT_DISPATCH_ALL_TYPES_AND": ("Half", "BFloat16"),
}


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in unit.here:
        for each in dispatches(unit, function):
            given = each.source.code_text(each.span.end, each.on_span.start)
            if each.expansion:
                left_out = _left_out_by(each.expansion)
                advice = "Add their cases to the macro, with at::Half and at::BFloat16 as the types of the elements."
            else:
                left_out = [kind for kind in _LEAVES_OUT.get(each.macro, ()) if kind not in given]
                advice = "Use AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, ...)."
            if left_out:
                yield Finding(
                    span=each.span,
                    message=f"`{each.macro}` leaves out {' and '.join(left_out)}\n{advice}",
                    evidence={"macro": each.macro, "left_out": left_out},
                    kernel=function.name,
                    cure=None if each.expansion else _cure(unit, each, left_out),
                )
        yield from _switches(unit, function)
        yield from _chains(unit, function)


def _left_out_by(expansion: str) -> list[str]:
    """Which of the two a macro of the extension's own leaves out, of those that have a case of float.

    >>> _left_out_by("if (T == at::kFloat) { using t = float; } else if (T == at::kHalf) { using t = at::Half; }")
    ['BFloat16']
    >>> _left_out_by("AT_DISPATCH_FLOATING_TYPES_AND_HALF(T, N, __VA_ARGS__)")
    ['BFloat16']
    """
    named = set(re.findall(r"(?:ScalarType::|\bk)(\w+)", expansion))
    cases = {_CASE_TYPES[each] for each in named if each in _CASE_TYPES}
    within = [_LEAVES_OUT.get(each, ()) for each in re.findall(r"\bAT_DISPATCH_\w+", expansion)]
    wanted = ("Half", "BFloat16") if "Float" in cases else next((each for each in within if each), ())
    return [kind for kind in wanted if kind not in cases]


def _switches(unit: Unit, function: Function) -> Iterator[Finding]:
    for node in nodes_below(function.source, function.node, "switch_statement"):
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        on = re.fullmatch(
            r"\(\s*(\w+)\s*\.\s*(?:scalar_type|dtype)\(\)\s*\)", function.source.node_code(condition or node)
        )
        if on is None or body is None:
            continue
        cases = {
            _CASE_TYPES[named[1]]: case
            for case in body.named_children
            if (value := case.child_by_field_name("value")) is not None
            and (named := re.search(r"(?:ScalarType::|\bk)(\w+)$", function.source.node_code(value)))
            and named[1] in _CASE_TYPES
        }
        left_out = [kind for kind in ("Half", "BFloat16") if kind not in cases]
        if "Float" in cases and left_out:
            yield Finding(
                span=function.source.span(condition or node),
                message=(
                    f"the `switch` over the type of `{on[1]}` leaves out {' and '.join(left_out)}\n"
                    "Add their cases, with at::Half and at::BFloat16 as the types of the elements."
                ),
                evidence={"tensor": on[1], "left_out": left_out},
                kernel=function.name,
                cure=_cases(unit, function, cases["Float"], left_out),
            )


def _chains(unit: Unit, function: Function) -> Iterator[Finding]:
    """`if (x.scalar_type() == at::kFloat) ... else if (...) ...`, whose last branch refuses every other type."""
    for node in nodes_below(function.source, function.node, "if_statement"):
        parent = parent_of(node)
        if parent is not None and parent.type == "else_clause":
            continue
        cases: dict[str, Node] = {}
        tensors: set[str] = set()
        link: Node | None = node
        while link is not None and link.type == "if_statement":
            condition = link.child_by_field_name("condition")
            named = _COMPARED.fullmatch(function.source.node_code(condition)) if condition is not None else None
            if named is None:
                break
            tensors.add(named[1])
            cases[named[2]] = link
            clause = link.child_by_field_name("alternative")
            link = next(iter(uncommented(clause)), None) if clause is not None else None
        is_refused = link is not None and re.search(r"CHECK|ERROR|throw\b", function.source.node_code(link))
        float_case = cases.get("Float", cases.get("Float32"))
        left_out = [kind for kind in ("Half", "BFloat16") if kind not in {_CASE_TYPES.get(each) for each in cases}]
        condition = node.child_by_field_name("condition")
        if float_case is not None and condition is not None and is_refused and len(tensors) == 1 and left_out:
            (tensor,) = tensors
            yield Finding(
                span=function.source.span(condition),
                message=(
                    f"the `if`s over the type of `{tensor}` leave out {' and '.join(left_out)}\n"
                    "Add a branch for each, with at::Half and at::BFloat16 as the types of the elements."
                ),
                evidence={"tensor": tensor, "left_out": left_out},
                kernel=function.name,
                cure=_branches(unit, function, float_case, left_out),
            )


def _branches(unit: Unit, function: Function, case: Node, left_out: Sequence[str]) -> Cure | None:
    """The branch of float again for the other types, where it names float as an argument of templates alone."""
    condition, body = case.child_by_field_name("condition"), case.child_by_field_name("consequence")
    if condition is None or body is None or any("atomic" in each.code for each in unit.reached(function)):
        return None
    if case.child_by_field_name("alternative") is None or not _is_argument_alone(function.source.node_code(body)):
        return None
    test, text = (decoded(function.source.data[each.start_byte : each.end_byte]) for each in (condition, body))
    of_float = re.compile(r"Float(?:32)?(?=\W*$)")
    added = [f" else if {of_float.sub(kind, test)} {text.replace('<float', f'<at::{kind}')}" for kind in left_out]
    return cure("Add branches for half and bfloat16", TextEdit(body.end_byte, body.end_byte, "".join(added)))


def _is_argument_alone(code: str) -> bool:
    """Whether float is named, and only as the first argument of templates."""
    return "float" in code and len(re.findall(r"<\s*float\b", code)) == len(re.findall(r"\bfloat\b", code))


def _cases(unit: Unit, function: Function, case: Node, left_out: Sequence[str]) -> Cure | None:
    """The case of float again for the other types, where it names float as an argument of templates alone."""
    text = decoded(function.source.data[case.start_byte : case.end_byte])
    value = case.child_by_field_name("value")
    if value is None or "break" not in text or any("atomic" in each.code for each in unit.reached(function)):
        return None
    label = decoded(function.source.data[value.start_byte : value.end_byte])
    if not _is_argument_alone(text.partition(label)[2]):
        return None
    indent = function.source.line_indent(case.start_byte)
    added = [
        f"\n{indent}" + text.replace(label, re.sub(r"Float(?:32)?$", kind, label)).replace("<float", f"<at::{kind}")
        for kind in left_out
    ]
    return cure("Add the cases of half and bfloat16", TextEdit(case.end_byte, case.end_byte, "".join(added)))


_TWO = {
    "AT_DISPATCH_FLOATING_TYPES": "AT_DISPATCH_FLOATING_TYPES_AND2",
    "AT_DISPATCH_FLOATING_TYPES_AND_HALF": "AT_DISPATCH_FLOATING_TYPES_AND2",
    "AT_DISPATCH_ALL_TYPES": "AT_DISPATCH_ALL_TYPES_AND2",
    "AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES": "AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2",
    "AT_DISPATCH_FLOATING_TYPES_AND": "AT_DISPATCH_FLOATING_TYPES_AND2",
    "AT_DISPATCH_ALL_TYPES_AND": "AT_DISPATCH_ALL_TYPES_AND2",
}


def _cure(unit: Unit, dispatch: Dispatch, left_out: Sequence[str]) -> Cure | None:
    """The macro with both types; none where what it calls has atomics."""
    if any("atomic" in each.code for each in unit.reached(dispatch.function)):
        return None
    at = dispatch.source.data.find(b"(", dispatch.span.start)
    wanted = ("Half", "BFloat16") if not dispatch.macro.endswith("_AND") else left_out
    if at < 0 or len(wanted) > 2 - dispatch.macro.endswith("_AND"):
        return None
    head = f"{_TWO[dispatch.macro]}({''.join(f'at::k{kind}, ' for kind in wanted)}"
    return cure("Dispatch half and bfloat16 too", TextEdit(dispatch.span.start, at + 1, head))
