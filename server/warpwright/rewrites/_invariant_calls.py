"""Calls of costly functions whose arguments stay the same, as the expressions that they stand in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.rewrites._code import functions_of, in_macro, macro_texts, squeezed
from warpwright.rewrites._layout import free_name
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

COSTLY = re.compile(
    r"(?:pow|exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|sinpi|cospi|erf"
    r"|erfc|tgamma|lgamma|sqrt|rsqrt|cbrt|hypot|fmod)f?"
)
"""Functions of CUDA that are tens of instructions and give the same for the same arguments, whenever called."""
_CHEAP = re.compile(r"(?:fabs|fmin|fmax|fma|floor|ceil|trunc|round|rint)f?|abs|min|max|float|double|int|static_cast")
_EXPRESSIONS = frozenset((
    "binary_expression", "unary_expression", "parenthesized_expression", "cast_expression", "call_expression",
    "argument_list", "number_literal", "identifier", "type_descriptor", "primitive_type", "type_identifier",
    "sized_type_specifier", "qualified_identifier", "namespace_identifier", "template_function",
    "template_argument_list",
))  # fmt: skip
_ARITHMETIC = ("+", "-", "*", "/")
_PLAIN = re.compile(r"(?:::)?(?:std::)?\w+|static_cast\s*<[\w ]+>")
_NUMBER = re.compile(r"\s*\(?\s*[-+]?[\d.][\w.]*(?:[eE][-+]?\d+)?[fFuUlL]*\s*\)?\s*")


def invariant_expressions(source: Source, within: Iterable[Node], is_fixed: Callable[[str], bool]) -> list[Node]:
    """The largest arithmetic expressions of names that are fixed and of numbers, each with a call of a costly function.
    They read no memory and change nothing."""
    own, macros = functions_of(source).keys(), macro_texts(source)

    def is_name_fixed(name: str) -> bool:
        texts = macros.get(name)
        return is_fixed(name) if texts is None else all(_NUMBER.fullmatch(text) for text in texts)

    found: list[Node] = []
    for statement in within:
        for call in descendants(statement, "call_expression"):
            name = called_name(call, source)
            if not COSTLY.fullmatch(name) or name in own or name in macros or in_macro(call):
                continue
            chain = [call]
            if not _is_invariant(source, call, is_name_fixed, own | macros.keys()):
                continue
            while (parent := chain[-1].parent) is not None and _is_arithmetic(parent):
                if not _is_invariant(source, parent, is_name_fixed, own | macros.keys()):
                    break
                chain.append(parent)
            while len(chain) > 1 and _is_contracted(chain[-1]):
                chain.pop()
            whole = chain[-1]
            if not any(other.start_byte <= whole.start_byte < other.end_byte for other in found):
                found.append(whole)
    return found


def hoisted(source: Source, expressions: list[Node], types: Mapping[str, str]) -> tuple[list[str], list[TextEdit]]:
    """Declarations of variables that hold the expressions, and the edits that read these instead. `types` are those of
    the kernel's variables, as written."""
    names: dict[str, str] = {}
    lines: list[str] = []
    edits: list[TextEdit] = []
    for expression in expressions:
        text = source.node_text(expression)
        while text.startswith("(") and squeezed(text) != re.sub(r"\s+", "", text):
            text = text[1:-1].strip()
        key = squeezed(text)
        if key not in names:
            call = expression if expression.type == "call_expression" else next(_costly(source, expression))
            taken = " ".join([source.code_text(), *names.values()])
            names[key] = free_name(taken, f"{called_name(call, source)}_value")
            lines.append(f"const {_type(source, expression, types)} {names[key]} = {text};")
        edits.append(TextEdit(expression.start_byte, expression.end_byte, names[key]))
    return lines, edits


def _type(source: Source, expression: Node, types: Mapping[str, str]) -> str:
    """The type of an expression: "double" or "float" where the text says it, else "auto"."""
    calls = [called_name(call, source) for call in descendants(expression, "call_expression")]
    casts = {source.node_text(n) for n in descendants(expression, "type_descriptor")}
    kinds = {types.get(source.node_text(n), "").strip() for n in descendants(expression, "identifier")}
    numbers = [source.node_text(n) for n in descendants(expression, "number_literal")]
    written = any(re.search(r"[.eE]", n) and n[-1] not in "fF" and n[:2] not in ("0x", "0X") for n in numbers)
    is_double = written or "double" in casts | kinds
    if not all(COSTLY.fullmatch(name) for name in calls) or not casts <= {"float", "double"}:
        return "auto"
    in_float = [name.endswith("f") and name != "erf" for name in calls]
    if is_double:
        return "auto" if any(in_float) or "float" in casts else "double"
    return "float" if all(in_float) and not casts else "auto"


def _costly(source: Source, node: Node) -> Iterator[Node]:
    return (c for c in descendants(node, "call_expression") if COSTLY.fullmatch(called_name(c, source)))


def _is_contracted(node: Node) -> bool:
    """Whether a product may become one instruction with the sum that it is a part of, which rounds once."""
    inner, outer = node, node.parent
    while inner.type == "parenthesized_expression":
        inner = uncommented(inner)[0]
    while outer is not None and outer.type == "parenthesized_expression":
        outer = outer.parent
    signs = [n.child_by_field_name("operator") for n in (inner, outer) if n is not None]
    if inner.type != "binary_expression" or outer is None or len(signs) != 2:
        return False
    product, total = signs
    return product is not None and product.type == "*" and (total is None or total.type in ("+", "-", "+=", "-="))


def _is_arithmetic(node: Node) -> bool:
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        return operator is not None and operator.type in _ARITHMETIC
    return node.type in ("parenthesized_expression", "unary_expression", "cast_expression")


def _is_invariant(source: Source, node: Node, is_fixed: Callable[[str], bool], own: Iterable[str]) -> bool:
    if node.type not in _EXPRESSIONS or any(child.type == "comment" for child in node.children):
        return False
    if node.type == "identifier":
        return is_fixed(source.node_text(node))
    if node.type == "call_expression":
        name, function = called_name(node, source), node.child_by_field_name("function")
        if function is None or not _PLAIN.fullmatch(source.node_code(function)):
            return False
        arguments = uncommented(node.child_by_field_name("arguments"))
        known = (COSTLY.fullmatch(name) or _CHEAP.fullmatch(name)) and name not in own
        return bool(known) and all(_is_invariant(source, a, is_fixed, own) for a in arguments)
    if node.type == "qualified_identifier":
        return False
    return all(_is_invariant(source, child, is_fixed, own) for child in node.named_children)
