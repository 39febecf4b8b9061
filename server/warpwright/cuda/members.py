"""Which value of a list a member of a struct gets: `y` is the `out` of `Buffers{x, y}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source


def listed_value(sources: Sequence[Source], source: Source, value: Node, kind: str, member: str) -> Node | None:
    """What a list of values gives a member; `kind` is the text of the struct's type where the list has none itself.
    None for what is no list, and where the struct is none that such a list sets member by member.

    >>> text = b"struct B { const float *in; float *out; };  B b{x, y};"
    >>> source = Source("a.cu", text)
    >>> (given,) = descendants(source.root, "initializer_list")
    >>> found = listed_value([source], source, given, "B", "out")
    >>> source.node_code(found) if found else None
    'y'
    """
    if value.type == "compound_literal_expression":
        typed, listed = value.child_by_field_name("type"), value.child_by_field_name("value")
        kind, value = source.node_code(typed) if typed is not None else "", listed or value
    if value.type != "initializer_list":
        return None
    given = uncommented(value)
    named = [each for each in given if each.type == "initializer_pair"]
    if named:
        return next((each.child_by_field_name("value") for each in named if _designated(source, each) == member), None)
    members = members_of(sources, kind)
    if members is None or member not in members or len(given) > len(members):
        return None
    place = members.index(member)
    return given[place] if place < len(given) else None


def _designated(source: Source, pair: Node) -> str:
    designator = pair.child_by_field_name("designator")
    return source.node_code(designator).removeprefix(".").strip() if designator is not None else ""


def members_of(sources: Sequence[Source], kind: str) -> list[str] | None:
    """The data members of a struct in their order; None where it is not found, or has bases or a constructor."""
    name = re.sub(r"<.*|\b(?:const|struct|class|typename)\b|[*&\s]", "", kind, flags=re.DOTALL).rpartition("::")[2]
    found = [(source, body) for source in sources for body in _bodies(source, name)] if name else []
    if len(found) != 1:
        return None
    (source, body) = found[0]
    if (
        any(child.type == "base_class_clause" for child in body.parent.named_children)
        if body.parent is not None
        else True
    ):
        return None
    members: list[str] = []
    for node in body.named_children:
        labels = node.children_by_field_name("declarator")
        if node.type in ("function_definition", "declaration") and any(
            source.node_code(each) == name for label in labels for each in descendants(label, "identifier")
        ):
            return None
        if node.type != "field_declaration" or any(source.node_code(each) == "static" for each in node.children):
            continue
        for label in labels:
            if label.type != "function_declarator" and not [*descendants(label, "function_declarator")]:
                inner = [label] if label.type == "field_identifier" else [*descendants(label, "field_identifier")]
                members += [source.node_code(each) for each in inner[:1]]
    return members


def _bodies(source: Source, name: str) -> Iterator[Node]:
    for node in nodes_below(source, source.root, "struct_specifier", "class_specifier"):
        body, label = node.child_by_field_name("body"), node.child_by_field_name("name")
        if body is None:
            continue
        if label is None and node.parent is not None and node.parent.type == "type_definition":
            label = next(iter(node.parent.children_by_field_name("declarator")), None)
        if label is not None and source.node_code(label) == name:
            yield body
