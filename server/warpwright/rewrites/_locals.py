"""The variables of a kernel: which are set once, which change, and the names that are free."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import functions_of, macro_texts
from warpwright.syntax.nodes import declared_name, descendants, enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Locals:
    """`values` are the initial values of variables that are declared once and keep them; `types` the type of every name
    that is declared once, parameters too, as it is written, or the number that a name of the user's stands for;
    `changed` the names that are assigned, stepped, bound to a reference, or whose address is taken."""

    values: Mapping[str, Node]
    types: Mapping[str, str]
    parameters: frozenset[str]
    changed: frozenset[str]

    def is_fixed(self, name: str) -> bool:
        """Whether a name means one value throughout the kernel: a parameter or variable that never changes."""
        return name not in self.changed and (name in self.parameters or name in self.values)


def locals_of(kernel: Kernel) -> Locals:
    found = _locals(kernel.source, kernel.node)
    numbers = kernel.number_types
    return replace(found, types={name: numbers.get(text, text) for name, text in found.types.items()})


@lru_cache(maxsize=64)
def _locals(source: Source, function: Node | None) -> Locals:
    block = function.child_by_field_name("body") if function is not None else None
    parameters = parameters_of(function) if function is not None else []
    declared: Counter[str] = Counter()
    types: dict[str, str] = {}
    values: dict[str, Node] = {}
    own: set[str] = set()
    for parameter in parameters:
        name = declared_name(source, parameter.child_by_field_name("declarator"))
        if name:
            own.add(name)
            declared[name] += 1
            types[name] = _type(source, parameter)
    changed: set[str] = set()
    for declaration in descendants(block, "declaration", "for_range_loop") if block is not None else ():
        for declarator in declaration.children_by_field_name("declarator"):
            name = declared_name(source, declarator)
            declared[name] += 1
            types[name] = _type(source, declaration)
            value = declarator.child_by_field_name("value")
            inner = declarator.child_by_field_name("declarator")
            plain = declarator.type == "init_declarator" and inner is not None and inner.type == "identifier"
            if plain and value is not None and value.type != "initializer_list":
                values[name] = value
    changed |= set(changed_names(source, block)) if block is not None else set()
    once = {name for name, count in declared.items() if count == 1}
    return Locals(
        {name: value for name, value in values.items() if name in once and name not in changed},
        {name: text for name, text in types.items() if name in once},
        frozenset(own & once),
        frozenset(changed),
    )


def is_floating(source: Source, node: Node, types: Mapping[str, str]) -> bool:
    """Whether an expression has a floating-point number in it that makes its value one: a literal, or a variable of
    such a type, not below a comparison, a cast to an integer, or in a subscript. `types` are those of variables."""
    if node.type == "cast_expression":
        written = node.child_by_field_name("type")
        kind = builtin_type(source.node_text(written)) if written is not None else None
        return kind is None or not kind.is_integer
    operator = node.child_by_field_name("operator")
    if operator is not None and source.node_text(operator) in ("<", ">", "<=", ">=", "==", "!=", "&&", "||", "!"):
        return False
    if node.type == "number_literal":
        text = source.node_code(node).lower()
        return not text.startswith("0x") and re.search(r"[.ef]", text) is not None
    if node.type == "identifier":
        kind = builtin_type(types.get(source.node_text(node), ""))
        return kind is not None and kind.kind == "float"
    parts = node.named_children
    if node.type == "subscript_expression":
        parts = [n for n in (node.child_by_field_name("argument"),) if n is not None]
    elif node.type == "conditional_expression":
        parts = [n for f in ("consequence", "alternative") if (n := node.child_by_field_name(f)) is not None]
    return any(is_floating(source, part, types) for part in parts)


def declared_names(source: Source, *nodes: Node) -> set[str]:
    """The names that the declarations in pieces of code declare, at any depth, those of references too."""
    return {
        declared_name(source, declarator)
        for node in nodes
        for declaration in descendants(node, "declaration")
        for declarator in declaration.children_by_field_name("declarator")
    }


def is_template_type(kernel: Kernel, name: str) -> bool:
    """Whether a name is a type that the kernel's template takes: `typename T`."""
    around = kernel.node.parent if kernel.node is not None else None
    parameters = around.child_by_field_name("parameters") if around is not None else None
    text = kernel.source.node_code(parameters) if parameters is not None else ""
    return re.search(rf"\b(?:typename|class)\s+{re.escape(name)}\b", text) is not None


def _type(source: Source, declaration: Node) -> str:
    kind = declaration.child_by_field_name("type")
    return source.node_text(kind) if kind is not None else ""


def changed_names(source: Source, block: Node) -> Iterator[str]:
    """Variables that a piece of code assigns, steps, hands to who may change them, or takes the address of, and those
    that the function around it binds to another name, through which any piece of it may change them."""
    functions, macros = functions_of(source), macro_texts(source)
    for node in descendants(
        block, "assignment_expression", "update_expression", "pointer_expression", "call_expression"
    ):
        match node.type:
            case "assignment_expression":
                target = node.child_by_field_name("left")
            case "update_expression":
                target = node.child_by_field_name("argument")
            case "pointer_expression":
                target = node.child_by_field_name("argument") if source.node_code(node).startswith("&") else None
            case _:
                if not _is_formula(macros.get(called_name(node, source), [])):
                    yield from _given_away(source, node, functions)
                target = None
        if target is not None:
            yield from _base_names(source, target)
    yield from _bound_otherwise(source, enclosing(block, "function_definition") or block)


@lru_cache(maxsize=256)
def _bound_otherwise(source: Source, function: Node) -> frozenset[str]:
    """Variables whose address a function keeps, or that it binds to a reference: `float &r = x;`, `p = &x;`."""
    found: set[str] = set()
    for address in descendants(function, "pointer_expression"):
        call = address.parent.parent if address.parent is not None and address.parent.type == "argument_list" else None
        kept = call is None or KNOWN_FUNCTIONS.fullmatch(called_name(call, source)) is None
        target = address.child_by_field_name("argument")
        if kept and target is not None and source.node_code(address).startswith("&"):
            found |= set(_base_names(source, target))
    for declarator in descendants(function, "init_declarator"):
        inner, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
        if inner is not None and inner.type == "reference_declarator" and value is not None:
            found |= set(_base_names(source, value))
    return frozenset(found)


def _is_formula(texts: list[str]) -> bool:
    """Whether a macro stands for a value and changes nothing: no assignment, no address, no call in it."""
    calls = re.compile(r"&|\+\+|--|(?<![=<>!])=(?!=)|[{};#]|[A-Za-z_]\w*\s*\(")
    return bool(texts) and not any(calls.search(text) for text in texts)


def _base_names(source: Source, target: Node) -> Iterator[str]:
    """The variable that a target is, or is a member of; an element of an array or behind a pointer is none."""
    inner: Node | None = target
    while inner is not None and inner.type in ("parenthesized_expression", "field_expression"):
        inner = inner.child_by_field_name("argument") or next(iter(uncommented(inner)), None)
    if inner is not None and inner.type == "identifier":
        yield source.node_text(inner)


def _given_away(source: Source, call: Node, functions: Mapping[str, list[Node]]) -> Iterator[str]:
    """Variables that a call may change: handed to a function that takes references, or that is not known."""
    name = called_name(call, source)
    defined = functions.get(name)
    by_value = (
        all("&" not in source.node_code(p) for function in defined for p in parameters_of(function))
        if defined
        else KNOWN_FUNCTIONS.fullmatch(name) is not None or name.endswith("_cast")
    )
    if not by_value:
        for argument in uncommented(call.child_by_field_name("arguments")):
            if argument.type == "identifier":
                yield source.node_text(argument)
