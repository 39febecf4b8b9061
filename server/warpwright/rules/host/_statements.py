"""Calls of the CUDA runtime in host functions: in which loop, in which order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, launch_configuration, parent_of, uncast, uncommented


def host_functions(unit: Unit) -> Iterator[Function]:
    """The functions of the judged file that are no device code."""
    for each in unit.here:
        if not any(child.type in ("__global__", "__device__") for child in each.node.children):
            yield each


def runtime_calls(function: Function, name: re.Pattern[str]) -> Iterator[tuple[Node, str, list[Node]]]:
    """Each call of a function of such a name, with the name and its arguments without casts."""
    for call in function.calls:
        callee = call.child_by_field_name("function")
        called = unqualified(function.source.node_code(callee)) if callee is not None else ""
        if name.fullmatch(called):
            given = uncommented(call.child_by_field_name("arguments"))
            yield call, called, [uncast(function.source, each) for each in given]


def loop_around(function: Function, node: Node) -> Node | None:
    """The innermost loop of the function in whose body a node stands."""
    for each in ancestors(node):
        if each.id == function.node.id:
            return None
        if each.type in LOOPS:
            body = each.child_by_field_name("body")
            if body is not None and body.start_byte <= node.start_byte < body.end_byte:
                return each
    return None


def statement_of(node: Node) -> Node | None:
    """The statement of a block that a node stands in."""
    around = node
    while (parent := parent_of(around)) is not None:
        if parent.type == "compound_statement":
            return around
        around = parent
    return None


def launches_in(node: Node) -> bool:
    return any(launch_configuration(call) is not None for call in descendants(node, "call_expression"))


def text_of(function: Function, node: Node) -> str:
    return "".join(function.source.node_code(node).split())


def is_pageable(function: Function, name: str) -> bool:
    """Whether a name of the function is memory of malloc, new, a vector or an array, and is not registered."""
    base = re.escape(re.split(r"[.\[+]", name.lstrip("&"))[0])
    if not base or re.search(rf"HostRegister\s*\(\s*{base}\b", function.code):
        return False
    made = (
        rf"\b{base}\s*=\s*(?:\([^()]*\)\s*|(?:static|reinterpret)_cast<[^<>]*>\s*\(\s*)?(?:std::)?(?:malloc|calloc|new)\b|"
        rf"\bvector<[^;]*>\s+{base}\b|\b(?:float|double|int|char|half|unsigned|size_t|long)\s+{base}\s*\["
    )
    return re.search(made, function.code) is not None
