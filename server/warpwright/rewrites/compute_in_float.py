"""Leave out casts to double where floats go into a formula and its result becomes a float.

## Before

```cuda
__global__ void weights(float *out, const float *in, const float *top, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = tanh((double)in[i] - top[0]) / (double)n;
}

void run(float *out, const float *in, const float *top, int n) {
  weights<<<(n + 255) / 256, 256>>>(out, in, top, n);
}
```

## After

```cuda
__global__ void weights(float *out, const float *in, const float *top, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = tanh(in[i] - top[0]) / (float)n;
}

void run(float *out, const float *in, const float *top, int n) {
  weights<<<(n + 255) / 256, 256>>>(out, in, top, n);
}
```

## Assumes

- The formula is made of floats, integers and literals by `+`, `-`, `*`, `/` and functions of the mathematical library,
  which have a version for float under the same name, and goes into a float by `=`, `+=`, `-=`, `*=` or `/=`.
- No variable in it is a double.

## Cost

Each step is rounded to float: by at most 2^-24 of its result, where a double is rounded by 2^-53 (IEEE 754). Functions
have the errors of their float versions, such as 1 ulp for exp and log (CUDA C++ Programming Guide, mathematical
functions). Where nearly equal numbers are subtracted, the error of the difference is larger than that, and a step that
leaves float's range, as exp does above 88.7, is infinite though the result may not be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._code import NoMatchError, body_of, in_macro, overlaps
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "compute-in-float"
title = "Compute in float"
goals = ("speed",)
relies_on = ()

_FUNCTIONS = frozenset(
    {
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh",
        "tanh", "asin", "acos", "atan", "erf", "erfc", "fabs", "floor", "ceil", "round", "trunc",
    }
)  # fmt: skip
"""Functions of one number that C++ has for float and double under one name."""
_ARITHMETIC = frozenset("+-*/")
Types = dict[str, tuple[CType, int]]
_LITERAL = re.compile(r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?[fF]?|\d+[uUlL]*")
_PLAIN = ("identifier", "subscript_expression", "number_literal", "call_expression", "parenthesized_expression")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    source, types = kernel.source, _types(kernel)
    reason = f"No float is cast to double in {kernel.name}."
    edits: dict[int, TextEdit] = {}
    lines: list[int] = []
    for cast in descendants(block, "cast_expression", "call_expression"):
        if _operand(source, cast) is None or cast.start_byte in edits:
            continue
        formula = _formula(source, cast)
        if at is not None and not overlaps(source.span(formula), at):
            continue
        try:
            found = list(_edits(source, formula, types))
        except NoMatchError as unfit:
            reason = str(unfit)
            continue
        edits |= {edit.start: edit for edit in found}
        lines.append(line_of(source, formula))
    if not edits:
        return Declined(NAME, reason)
    listed = ", ".join(str(line) for line in dict.fromkeys(lines))
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits[start] for start in sorted(edits)),
        explanation=(
            f"The casts make the arithmetic and the functions at line {listed} those of double, though floats go in "
            "and a float is kept. A function such as exp takes several times the instructions in double, and most GPUs "
            "have few units for double. In float the results can change in the last digits."
        ),
        safe=False,
    )


def _operand(source: Source, node: Node) -> Node | None:
    """What is cast to double by `(double)x`, `double(x)` and `static_cast<double>(x)`; None for anything else."""
    if node.type == "cast_expression":
        kind = node.child_by_field_name("type")
        return node.child_by_field_name("value") if kind is not None and source.node_text(kind) == "double" else None
    function = node.child_by_field_name("function")
    spelled = re.sub(r"\s", "", source.node_code(function)) if function is not None else ""
    arguments = uncommented(node.child_by_field_name("arguments"))
    return arguments[0] if spelled in ("double", "static_cast<double>") and len(arguments) == 1 else None


def _formula(source: Source, cast: Node) -> Node:
    """The whole expression that a cast is a part of."""
    node = cast
    while node.parent is not None:
        around = node.parent
        if around.type == "argument_list" and around.parent is not None and around.parent.type == "call_expression":
            node = around.parent
        elif around.type in ("binary_expression", "parenthesized_expression", "unary_expression", "cast_expression"):
            node = around
        else:
            break
    return node


def _edits(source: Source, formula: Node, types: Types) -> Iterator[TextEdit]:
    """What makes a formula one of floats; refuses one that holds a double or whose result is kept as one."""
    line = line_of(source, formula)
    if in_macro(formula):
        raise NoMatchError(f"The formula at line {line} is in a macro.")
    if not _goes_into_float(source, formula, types):
        raise NoMatchError(f"The result at line {line} does not go into a float.")
    if not any(_kind(source, operand, types) == "float" for operand in _cast(source, formula)):
        raise NoMatchError(f"What is cast to double at line {line} is not a float.")
    yield from _of_part(source, formula, types)


def _cast(source: Source, formula: Node) -> Iterator[Node]:
    for node in (formula, *descendants(formula, "cast_expression", "call_expression")):
        operand = _operand(source, node)
        if operand is not None:
            yield operand


def _goes_into_float(source: Source, formula: Node, types: Types) -> bool:
    around = formula.parent
    if around is None:
        return False
    if around.type == "init_declarator":
        declared = around.child_by_field_name("declarator")
        plain = declared is not None and declared.type == "identifier"
        kind = around.parent.child_by_field_name("type") if around.parent is not None else None
        return plain and kind is not None and source.node_text(kind) == "float"
    target, operator = around.child_by_field_name("left"), around.child_by_field_name("operator")
    if around.type != "assignment_expression" or target is None or operator is None:
        return False
    known = source.node_text(operator) in ("=", "+=", "-=", "*=", "/=")
    return known and around.child_by_field_name("right") == formula and _kind(source, target, types) == "float"


def _of_part(source: Source, node: Node, types: Types) -> Iterator[TextEdit]:
    """The edits of a part of a formula, which has to be of floats, integers and functions of them."""
    operand = _operand(source, node)
    if operand is not None:
        if _kind(source, operand, types) == "int":
            yield TextEdit(
                node.start_byte, operand.start_byte, "(float)" if node.type == "cast_expression" else "float("
            )
        elif node.type == "cast_expression":
            yield TextEdit(node.start_byte, operand.start_byte, "")
        else:
            enclosed = node.parent is not None and node.parent.type in ("argument_list", "parenthesized_expression")
            plain = enclosed or operand.type in _PLAIN
            yield TextEdit(node.start_byte, operand.start_byte, "" if plain else "(")
            yield TextEdit(operand.end_byte, node.end_byte, "" if plain else ")")
        yield from _of_part(source, operand, types)
        return
    if _kind(source, node, types) == "int":
        return
    match node.type:
        case "parenthesized_expression":
            for inner in uncommented(node):
                yield from _of_part(source, inner, types)
        case "binary_expression" | "unary_expression":
            signs = [child.type for child in node.children if not child.is_named]
            if not set(signs) <= _ARITHMETIC:
                raise _unfit(source, node)
            if set(signs) & {"+", "-"} and _of_integers(source, node, types):
                text = re.sub(r"\s+", " ", source.plain_text(node))
                raise NoMatchError(
                    f"`{text}` at line {line_of(source, node)} is of integers alone: in float, large ones lose what "
                    "their difference is made of."
                )
            for field in ("left", "right", "argument"):
                inner_node = node.child_by_field_name(field)
                if inner_node is not None:
                    yield from _of_part(source, inner_node, types)
        case "call_expression":
            arguments = uncommented(node.child_by_field_name("arguments"))
            function = node.child_by_field_name("function")
            known = called_name(node, source) in _FUNCTIONS and function is not None and function.type == "identifier"
            if not known or len(arguments) != 1 or not _is_floating(source, arguments[0], types):
                raise _unfit(source, node)
            yield from _of_part(source, arguments[0], types)
        case "number_literal":
            text = source.node_text(node)
            if not _LITERAL.fullmatch(text):
                raise _unfit(source, node)
            if re.search(r"[.eE]", text) and text[-1] not in "fF":
                value = abs(float(text))
                if value > 3.4e38 or 0 < value < 1.2e-38:
                    raise _unfit(source, node)
                yield TextEdit(node.end_byte, node.end_byte, "f")
        case _:
            if not _kind(source, node, types):
                raise _unfit(source, node)


def _of_integers(source: Source, node: Node, types: Types) -> bool:
    """Whether both sides of a sum or difference are integers that a cast makes double."""
    sides = [node.child_by_field_name(field) for field in ("left", "right")]
    operands = [_operand(source, side) or side for side in sides if side is not None]
    return len(operands) == 2 and all(_kind(source, operand, types) == "int" for operand in operands)


def _is_floating(source: Source, node: Node, types: Types) -> bool:
    """Whether a formula is one of float, and not of integers alone, once its casts are gone."""
    leaves = (node, *descendants(node, "identifier", "subscript_expression", "number_literal"))
    literal = any(n.type == "number_literal" and re.search(r"[.]", source.node_code(n)) for n in leaves)
    return literal or any(_kind(source, n, types) == "float" for n in leaves)


def _kind(source: Source, node: Node, types: Types) -> str:
    """ "float" or "int" for a variable or an element of such, or a formula of them; empty for anything else."""
    if node.type == "parenthesized_expression" and len(uncommented(node)) == 1:
        return _kind(source, uncommented(node)[0], types)
    if node.type == "binary_expression":
        sides = [node.child_by_field_name(field) for field in ("left", "right")]
        kinds = {_kind(source, side, types) for side in sides if side is not None}
        return "" if "" in kinds else "float" if "float" in kinds else "int"
    if node.type == "number_literal":
        text = source.node_text(node)
        return "int" if re.fullmatch(r"\d+[uUlL]*", text) else "float" if text[-1] in "fF" else ""
    depth, inner = 0, node
    while inner.type == "subscript_expression" and inner.child_by_field_name("argument") is not None:
        depth, inner = depth + 1, inner.child_by_field_name("argument") or inner
    kind, levels = types.get(source.node_text(inner), (None, 0)) if inner.type == "identifier" else (None, 0)
    if kind is None or levels != depth:
        return ""
    return "float" if kind.name == "float" else "int" if kind.is_integer else ""


def _types(kernel: Kernel) -> Types:
    """What each name stands for that is declared once: the type of its numbers, and how many `[...]` lead to one."""
    source, known = kernel.source, locals_of(kernel).types
    found: Types = {}
    node = kernel.node
    for declaration in descendants(node, "declaration", "parameter_declaration") if node is not None else ():
        for declarator in declaration.children_by_field_name("declarator"):
            name, levels, inner = declared_name(source, declarator), 0, declarator
            while inner.type != "identifier":
                levels += inner.type in ("pointer_declarator", "array_declarator")
                reference = inner.type == "reference_declarator"
                following = inner.child_by_field_name("declarator")
                if following is None or reference:
                    break
                inner = following
            kind = builtin_type(known.get(name, ""))
            if kind is not None and inner.type == "identifier":
                found[name] = kind, levels
    return found


def _unfit(source: Source, node: Node) -> NoMatchError:
    text = re.sub(r"\s+", " ", source.plain_text(node))
    return NoMatchError(f"`{text}` at line {line_of(source, node)} is not known to be float or an integer.")
