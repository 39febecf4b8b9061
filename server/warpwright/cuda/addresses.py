"""Where the pointers of a launch lead: which of them lie in one piece of memory, and how far from its start.

A pointer is followed through casts, `p + e`, `&p[e]`, variables that are set once, members of structs, and the
arguments of the calls on the launch's path. What it ends at is the name of a variable in a host function: two pointers
that end at one are one piece of memory; two that end at different ones are apart, unless `cuda/origins` says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.cuda.functions import declared_type
from warpwright.cuda.members import listed_value
from warpwright.cuda.paths import LaunchPath, parameter_place
from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

MOST_STEPS = 24
NULL_POINTERS = frozenset({"nullptr", "NULL", "0"})
"""What leads to no memory."""
ALLOCATES = re.compile("alloc|new|make|create", re.IGNORECASE)
"""In the name of a function: it gives another piece of memory at each call."""
_CASTS = ("reinterpret_cast", "static_cast", "const_cast")
_GETTERS = (".data", ".get", ".begin", ".data_ptr", ".mutable_data_ptr", ".const_data_ptr")


@dataclass(frozen=True, slots=True)
class Move:
    """A step away from where a pointer began: the expression that is added to it, with its sign, in elements of what
    `type` says, the text of a type or "" where that is not known, at one depth of the path."""

    node: Node
    sign: int
    depth: int
    type: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """What a pointer ends at. `memory` tells pieces apart: a file, the start of a function, and a name there, or a call
    with its place, which may give another piece each time; `end` is the expression that is not followed further, where
    there is one."""

    memory: tuple[str, int, str]
    moves: tuple[Move, ...] = ()
    end: Node | None = None


def address_of(path: LaunchPath, argument: Node) -> Address:
    """Where a pointer argument of the launch leads."""
    return _followed(path, argument, 0, (), MOST_STEPS)


def _followed(path: LaunchPath, node: Node, depth: int, moves: tuple[Move, ...], steps: int) -> Address:
    source, function = path.scope(depth)
    while True:
        inner, moved, kind = _peeled(source, node)
        if inner is None:
            break
        moves = (*_in_elements_of(moves, kind), *(Move(each, sign, depth) for each, sign in moved))
        node = inner
    if node.type == "identifier" and function is not None:
        moves = _in_elements_of(moves, declared_type(source, function, source.node_code(node)) or "")
    text = _plain(source.node_code(node))
    start = function.start_byte if function is not None else -1
    if node.type == "call_expression" and (
        "." not in text.partition("(")[0] or ALLOCATES.search(text.partition("(")[0])
    ):
        text = f"{text}@{node.start_byte}"
    here = Address((source.path, start, text), moves, node)
    if steps == 0 or node.type not in ("identifier", "field_expression", "subscript_expression"):
        return here
    place = parameter_place(source, function, text) if node.type == "identifier" else None
    if place is not None:
        if _is_set(source, function, text):
            return here
        passed = path.argument(depth, place)
        return _followed(path, passed[0], passed[1], moves, steps - 1) if passed is not None else here
    value = _only_value(source, function, text, path.position(depth))
    if value is not None:
        return _followed(path, value, depth, moves, steps - 1)
    base, member = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if node.type != "field_expression" or base is None or member is None:
        return here
    return _of_member(path, base, source.node_code(member), depth, moves, steps - 1) or here


def _of_member(
    path: LaunchPath, base: Node, member: str, depth: int, moves: tuple[Move, ...], steps: int, kind: str = ""
) -> Address | None:
    """Where a member of a struct leads that is a pointer; None for a struct that has no name and is no list. `kind` is
    the text of its type where the struct's value does not say it."""
    source, function = path.scope(depth)
    while base.type in ("parenthesized_expression", "pointer_expression") and len(uncommented(base)) == 1:
        (base,) = uncommented(base)
    listed = listed_value(path.sources, source, base, kind, member)
    if listed is not None and source.node_code(listed) not in NULL_POINTERS:
        return _followed(path, listed, depth, moves, steps - 1)
    if steps <= 0 or base.type != "identifier" or function is None:
        return None
    name = source.node_code(base)
    here = Address((source.path, function.start_byte, f"{name}.{member}"), moves)
    if _assigned(source, function, here.memory[2]):
        value = _only_value(source, function, here.memory[2], path.position(depth))
        return _followed(path, value, depth, moves, steps - 1) if value is not None else here
    if _is_set(source, function, name) or _is_lent(path, name, depth):
        return here
    kind = declared_type(source, function, name) or ""
    place = parameter_place(source, function, name)
    passed = path.argument(depth, place) if place is not None else None
    if passed is not None:
        return _of_member(path, passed[0], member, passed[1], moves, steps - 1, kind) or here
    value = next(iter(_initial(source, function, name, path.position(depth))[-1:]), None)
    return (_of_member(path, value, member, depth, moves, steps - 1, kind) if value is not None else None) or here


def _is_lent(path: LaunchPath, name: str, depth: int) -> bool:
    """Whether a function hands out a variable's address elsewhere than to the launch: others may set its members."""
    source, function = path.scope(depth)
    inward = path.inward(depth)
    return function is not None and any(
        source.node_code(node).startswith("&")
        and (taken := node.child_by_field_name("argument")) is not None
        and source.node_code(taken) == name
        and not inward.start_byte <= node.start_byte < inward.end_byte
        for node in nodes_below(source, function, "pointer_expression")
    )


def _in_elements_of(moves: tuple[Move, ...], kind: str) -> tuple[Move, ...]:
    """What was added to a pointer before its type was seen, in elements of that type."""
    return tuple(each if each.type or not kind else replace(each, type=kind) for each in moves)


def _peeled(source: Source, node: Node) -> tuple[Node | None, Sequence[tuple[Node, int]], str]:
    """The pointer inside of an expression, what is added to it, and the type that it is cast to; None where it is no
    such expression."""
    match node.type:
        case "parenthesized_expression" if len(uncommented(node)) == 1:
            return uncommented(node)[0], (), ""
        case "cast_expression":
            kind = node.child_by_field_name("type")
            return node.child_by_field_name("value"), (), source.node_code(kind) if kind is not None else ""
        case "pointer_expression" if source.node_code(node).startswith("&"):
            inner = node.child_by_field_name("argument")
            if inner is None or inner.type != "subscript_expression":
                return None, (), ""
            indices = uncommented(inner.child_by_field_name("indices"))
            return inner.child_by_field_name("argument"), [(each, 1) for each in indices[:1]], ""
        case "binary_expression":
            operator = node.child_by_field_name("operator")
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            sign = {"+": 1, "-": -1}.get(source.node_code(operator) if operator is not None else "")
            if sign is None or left is None or right is None:
                return None, (), ""
            if sign == 1 and left.type == "number_literal":
                return right, [(left, 1)], ""
            return left, [(right, sign)], ""
        case "call_expression":
            return _within_call(source, node)
    return None, (), ""


def peeled_call(source: Source, node: Node) -> Node | None:
    """The pointer inside of a call that only casts it or gives what an object holds; None for other calls."""
    return _within_call(source, node)[0]


def _within_call(source: Source, node: Node) -> tuple[Node | None, Sequence[tuple[Node, int]], str]:
    called, given = node.child_by_field_name("function"), uncommented(node.child_by_field_name("arguments"))
    text = source.node_code(called) if called is not None else ""
    name = text.partition("<")[0].strip()
    if len(given) == 1 and (name in _CASTS or name.rpartition("::")[2] == "raw_pointer_cast"):
        return given[0], (), text.partition("<")[2].rpartition(">")[0]
    plain = re.sub(r"<.*>$", "", re.sub(r"\s", "", text).replace("->", "."))
    if called is not None and not given and plain.endswith(_GETTERS):
        field = called if called.type == "field_expression" else next(descendants(called, "field_expression"), None)
        return (field.child_by_field_name("argument") if field is not None else None), (), ""
    return None, (), ""


def _is_set(source: Source, function: Node | None, name: str) -> bool:
    return bool(_assigned(source, function, name))


def _assigned(source: Source, function: Node | None, name: str) -> list[Node]:
    """The values that are assigned to a variable; where it is stepped or its address is taken for a swap, more."""
    if function is None:
        return []
    return [
        node
        for node in nodes_below(source, function, "assignment_expression", "update_expression")
        if (target := node.child_by_field_name("left") or node.child_by_field_name("argument")) is not None
        and _plain(source.node_code(target)) == name
    ]


def _plain(text: str) -> str:
    """The name of a variable or of a member, however it is spaced and reached.

    >>> _plain("p -> out"), _plain("p.out")
    ('p.out', 'p.out')
    """
    return re.sub(r"\s", "", text).replace("->", ".")


def _only_value(source: Source, function: Node | None, name: str, before: int) -> Node | None:
    """What a local pointer is: its initial value where nothing is assigned to it, or the one value that is, before the
    launch; None for others, such as one that an allocation sets."""
    if function is None:
        return None
    initial = _initial(source, function, name, before)
    assigned = _assigned(source, function, name)
    empty = not initial or source.node_code(initial[-1]) in NULL_POINTERS
    if not assigned:
        return initial[-1] if not empty and _is_pointer(initial[-1]) else None
    if len(assigned) > 1 or not empty or assigned[0].type != "assignment_expression" or assigned[0].start_byte > before:
        return None
    operator, value = assigned[0].child_by_field_name("operator"), assigned[0].child_by_field_name("right")
    is_plain = operator is not None and source.node_code(operator) == "="
    return value if is_plain and value is not None and _is_pointer(value) else None


def _initial(source: Source, function: Node, name: str, before: int) -> list[Node]:
    """The values that variables of a name begin with, of those that are declared before a byte."""
    return [
        value
        for node in nodes_below(source, function, "init_declarator")
        if node.start_byte < before
        and (declared := node.child_by_field_name("declarator")) is not None
        and (value := node.child_by_field_name("value")) is not None
        and _declared_name(source, declared) == name
    ]


def _declared_name(source: Source, declarator: Node) -> str:
    found = declarator if declarator.type == "identifier" else next(descendants(declarator, "identifier"), None)
    return source.node_code(found) if found is not None else ""


def _is_pointer(value: Node) -> bool:
    """Whether a value may be another pointer, and is no allocation, list or number."""
    return value.type in (
        "identifier", "binary_expression", "pointer_expression", "cast_expression", "parenthesized_expression",
        "call_expression", "field_expression",
    )  # fmt: skip
