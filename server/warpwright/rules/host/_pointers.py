"""Pointers of the host function that launches: where they get their memory, and where they are used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, node_at, uncast, uncommented
from warpwright.syntax.source import Source, Span

ALLOCATES = re.compile(r"(?:cuda|hip)Malloc(?:Managed|Async|Host)?|(?:cuda|hip)HostAlloc")
FREES = re.compile(r"(?:cuda|hip)Free(?:Async)?")
MOVES = re.compile(r"(?:cuda|hip)Mem(?:cpy|set)(?:Async)?")


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """A launch of the kernel and the host function that it stands in."""

    source: Source
    call: Node
    function: Node

    @property
    def arguments(self) -> list[Node]:
        return [uncast(self.source, node) for node in uncommented(self.call.child_by_field_name("arguments"))]


def launches_of(kernel: Kernel) -> Iterator[HostLaunch]:
    """The launches that stand in functions of the text."""
    for launch in kernel.launches:
        node = node_at(launch.span.source.root, launch.span.start, launch.span.end) if launch.span is not None else None
        while node is not None and not (node.type == "call_expression" and launch_configuration(node) is not None):
            node = node.parent
        function = enclosing(node, "function_definition") if node is not None else None
        if launch.span is not None and node is not None and function is not None:
            yield HostLaunch(launch.span.source, node, function)


def calls(source: Source, within: Node, name: re.Pattern[str]) -> Iterator[tuple[Node, list[Node]]]:
    """The calls of functions of such a name, with their arguments without casts."""
    for call in descendants(within, "call_expression"):
        called = call.child_by_field_name("function")
        if called is not None and name.fullmatch(unqualified(source.node_code(called))):
            given = uncommented(call.child_by_field_name("arguments"))
            yield call, [uncast(source, node) for node in given]


def is_address_of(source: Source, node: Node, name: str) -> bool:
    """`&name`"""
    return node.type == "pointer_expression" and source.node_code(node).replace(" ", "") == f"&{name}"


def statement_of(node: Node) -> Node | None:
    """The statement of a block that a node stands in."""
    while node.parent is not None and node.parent.type != "compound_statement":
        node = node.parent
    return node if node.parent is not None else None


def is_set(source: Source, within: Node, name: str) -> bool:
    """Whether something in a piece of text may give a pointer another value: an assignment, or its address."""
    for node in descendants(within, "assignment_expression", "pointer_expression"):
        left = node.child_by_field_name("left")
        if left is not None and source.node_code(left) == name:
            return True
        if node.type == "pointer_expression" and is_address_of(source, node, name):
            return True
    return False


def span_of(source: Source, node: Node) -> Span:
    return Span(source, node.start_byte, node.end_byte)
