"""What host functions define: variables, elements of arrays, members, and under which condition they are set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tree_sitter import Node

from warpwright.cuda.walks import nodes_in
from warpwright.facts.constants import substitute
from warpwright.facts.launch_calls import arguments_behind
from warpwright.facts.preprocessor import Macro
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import ancestors, descendants, node_at, uncommented
from warpwright.syntax.source import Source


class Definition(NamedTuple):
    """A place that sets a variable.

    `kind` is "=", an operator, "declare" for a declaration without a value, "construct" for arguments of a constructor
    and "written" where a call gets the variable's address. `sides` are the sides of `if`s and the cases around it.
    """

    start: int
    value: Node | None
    kind: str
    sides: tuple[Node, ...]


@dataclass(slots=True)
class HostScope:
    """Definitions of names in one host function, by position. That of a macro's expansion is in another, at the use."""

    source: Source
    function: Node | None
    outer: tuple[HostScope, int] | None = None
    definitions: dict[str, list[Definition]] = field(default_factory=lambda: {})
    changed: frozenset[str] | None = None
    """Names that may change in the function (`settled`), once somebody asked."""
    parameters: list[str] | None = None
    """The names of the function's parameters, likewise."""
    may_leave: int | None = None
    """Where the first test ends that may leave the function, likewise."""


def read_definitions(source: Source, function: Node) -> dict[str, list[Definition]]:
    """The definitions in a function, by the text of what they set: `n`, `p.n`, `sizes[0]`."""
    found: dict[str, list[Definition]] = {}

    def add(target: Node, at: Node, value: Node | None, kind: str) -> None:
        name = re.sub(r"\s+", "", source.node_code(target))
        found.setdefault(name, []).append(Definition(at.start_byte, value, kind, tuple(_sides(at, function))))

    for call in nodes_in(function, "call_expression"):
        for written in _handed_out(source, call):
            add(written, written, None, "written")
    for node in nodes_in(function, "init_declarator", "assignment_expression", "declaration"):
        if node.type == "declaration":
            for declarator in node.children_by_field_name("declarator"):
                if declarator.type == "identifier":
                    add(declarator, declarator, None, "declare")
                elif declarator.type == "function_declarator":  # dim3 grid(n); reads as a function
                    name = declarator.child_by_field_name("declarator")
                    if name is not None:
                        add(name, declarator, declarator.child_by_field_name("parameters"), "construct")
            continue
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        op = operator.type if operator is not None else "="
        while target is not None and target.type in ("array_declarator", "pointer_declarator", "reference_declarator"):
            target = next((c for c in target.named_children if c.type.endswith(("declarator", "identifier"))), None)
        if target is not None and target.type in ("identifier", "field_expression", "subscript_expression"):
            add(target, node, value, "construct" if value is not None and value.type == "argument_list" else op)
    for step in nodes_in(function, "update_expression"):  # that of a `for` is the loop's own
        target, around = step.child_by_field_name("argument"), step.parent
        in_head = around is not None and around.type == "for_statement" and around.child_by_field_name("update") == step
        if target is not None and target.type in ("identifier", "field_expression") and not in_head:
            add(target, step, None, "written")
    for item in nodes_in(function, "enumerator"):
        label, value = item.child_by_field_name("name"), item.child_by_field_name("value")
        if label is not None and value is not None:
            add(label, item, value, "=")
    for entries in found.values():
        entries.sort(key=lambda entry: entry.start)
    return found


def _sides(node: Node, function: Node) -> Iterator[Node]:
    inner = node
    for around in ancestors(node):
        if around == function:
            return
        if around.type == "case_statement":
            yield around
        elif around.type == "if_statement" and inner != around.child_by_field_name("condition"):
            yield inner
        inner = around


def defined_by_macro(macros: Mapping[str, Macro], source: Source, name: str, at: int) -> str | None:
    """What a macro around a place says that a name is there, as its text: of several, what comes first.

    Example: 64 for SIZE in `DISPATCH(n, SIZE, [&] { k<SIZE><<<1, 32>>>(); })`, with a macro of the form
    `if (VALUE == 64) { constexpr int NAME = 64; __VA_ARGS__(); } else ...`.
    """
    node = node_at(source.closed_root, at, at)
    defines = re.compile(rf"\b(?:using|const|constexpr|typedef)\b[\w\s:]*\b{re.escape(name)}\s*=\s*([^;{{}}]+);")
    for call in ancestors(node) if node is not None else ():
        function = call.child_by_field_name("function") if call.type == "call_expression" else None
        listed = call.child_by_field_name("arguments") if call.type == "call_expression" else None
        macro = macros.get(source.node_code(function)) if function is not None else None
        if macro is None or macro.parameters is None or listed is None:
            continue
        given = arguments_behind(source.data, listed.start_byte + 1)
        found = defines.search(substitute(macro, list(given[0]))) if given is not None else None
        if found is None and name not in macro.parameters:
            found = defines.search(macro.body)
        if found is not None:
            return found[1].strip()
    return None


def given_members(source: Source) -> Iterator[tuple[str, Node]]:
    """The members of structs that a text sets, and to what: defaults, and assignments such as `p.n = 4`."""
    for node in descendants(source.closed_root, "field_declaration", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("default_value") or node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if target is None or value is None or (operator is not None and operator.type != "="):
            continue
        label = target.child_by_field_name("field") if target.type == "field_expression" else target
        if label is not None and label.type == "field_identifier":
            yield source.node_code(label), value


def written_names(root: Node) -> Iterator[Node]:
    """The names that a text assigns to, counts up or down, reads into with `>>`, or takes the address of."""
    for node in descendants(
        root, "assignment_expression", "update_expression", "pointer_expression", "binary_expression"
    ):
        if node.type == "binary_expression":
            operator = node.child_by_field_name("operator")
            target = node.child_by_field_name("right") if operator is not None and operator.type == ">>" else None
            if node.parent is None or node.parent.type not in ("expression_statement", "binary_expression"):
                continue
        elif node.type == "pointer_expression":
            address = node.children[0].type == "&"
            target = node.child_by_field_name("argument") if address else None
        else:
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        while target is not None and target.type in ("field_expression", "parenthesized_expression"):
            target = target.child_by_field_name("argument") or next(iter(target.named_children), None)
        if target is not None and target.type == "identifier":
            yield target


_READERS = re.compile(r"(?:cuda|cu|hip)?[mM]em(?:cpy|set)\w*|\w*printf|\w*Launch\w*|\w*(?:Malloc|Free)\w*")
"""Functions that read what they get the address of, or that write a pointer there."""


def _handed_out(source: Source, call: Node) -> Iterator[Node]:
    """The variables that a call gets to write to: `sscanf(text, "%d", &n)`, `tune(threads)` of a `void tune(int &)`."""
    function = call.child_by_field_name("function")
    called = unqualified(source.node_code(function)) if function is not None else ""
    if function is None or _READERS.fullmatch(called):
        return
    by_reference = _reference_places(source).get(called, frozenset())
    for place, argument in enumerate(uncommented(call.child_by_field_name("arguments"))):
        inner = argument.child_by_field_name("value") if argument.type == "cast_expression" else argument
        if inner is not None and inner.type == "pointer_expression" and inner.children[0].type == "&":
            inner = inner.child_by_field_name("argument")
        elif place not in by_reference:
            continue
        if inner is not None and inner.type == "identifier":
            yield inner


@lru_cache(maxsize=16)
def _reference_places(source: Source) -> Mapping[str, frozenset[int]]:
    """Of the functions that a text declares or defines, the places of the parameters that they may write to through a
    reference; of several with one name, those of all."""
    found: dict[str, frozenset[int]] = {}
    for declarator in descendants(source.closed_root, "function_declarator"):
        name = declarator.child_by_field_name("declarator")
        places = frozenset(
            place
            for place, parameter in enumerate(uncommented(declarator.child_by_field_name("parameters")))
            if any(child.type.endswith("reference_declarator") for child in parameter.children)
            and not any(child.type == "type_qualifier" and child.text == b"const" for child in parameter.children)
        )
        if name is not None and places:
            called = unqualified(source.node_code(name))
            found[called] = found.get(called, frozenset()) | places
    return found
