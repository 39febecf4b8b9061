"""Where the variables of a host function are set, and which places of it see one value of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from warpwright.facts.host_scopes import read_definitions, written_names
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, node_at
from warpwright.syntax.source import Source

_OUT_OF_ORDER = (*LOOPS, "lambda_expression")


def symbol_at(source: Source, node: Node, text: str, words: Sequence[str]) -> str | None:
    """A name for what an expression of variables holds at a place: its text, and where one of them was set last.

    Two places with one name see one number. None where a loop or a lambda sets a variable, or a reference or a pointer
    to it is kept: then the order of the text is not that of the run.
    """
    function = enclosing(node, "function_definition")
    if function is None:
        return None
    found = read_definitions(source, function)
    places = [d.start for name in (*words, text) for d in found.get(name, ()) if d.kind != "declare"]
    places += [n.start_byte for n in written(function) if source.node_text(n) in words]
    if not places:
        return text
    setters = [node_at(source.root, place, place) for place in places]
    if any(each is None or enclosing(each, *_OUT_OF_ORDER) is not None for each in setters):
        return None
    if any(_is_bound(each) for each in setters if each is not None):
        return None
    if enclosing(node, "lambda_expression") is not None or next(descendants(function, "goto_statement"), None):
        return None
    before = [place for place in places if place < node.start_byte]
    return f"{text}#{max(before)}" if before else text


def whole_target(name: Node) -> Node:
    """`p.n` for the `p` of it."""
    while name.parent is not None and name.parent.type in ("field_expression", "subscript_expression"):
        name = name.parent
    return name


def written(function: Node) -> Iterator[Node]:
    """The variables that a function sets, hands out or binds a reference to."""
    yield from written_names(function)
    for node in descendants(
        function, "assignment_expression", "update_expression", "init_declarator", "call_expression"
    ):
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if target is not None and target.type == "subscript_expression":
            base = target.child_by_field_name("argument")
            if base is not None and base.type == "identifier":
                yield base
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if declarator is not None and declarator.type == "reference_declarator" and value is not None:
            yield from descendants(value, "identifier")
        called = node.child_by_field_name("function")
        if called is not None and (called.text or b"").split(b"::")[-1] == b"swap":
            yield from descendants(node.child_by_field_name("arguments") or called, "identifier")


def _is_bound(setter: Node) -> bool:
    """Whether a place makes another name for a variable: `int &m = n`, `int *p = &n`, where not a call gets it."""
    around = setter.parent
    if around is not None and around.type == "pointer_expression":
        around = around.parent
        return around is None or around.type not in ("argument_list", "cast_expression")
    declaration = enclosing(setter, "init_declarator")
    declarator = declaration.child_by_field_name("declarator") if declaration is not None else None
    return declarator is not None and declarator.type == "reference_declarator"
