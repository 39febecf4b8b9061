"""The declarations of variables and parameters by name, read once of each source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

_TYPES = ("declaration", "parameter_declaration", "optional_parameter_declaration", "for_range_loop")


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """`declarator` is the part of the declaration that says the name."""

    node: Node
    declarator: Node

    @property
    def type(self) -> Node | None:
        return self.node.child_by_field_name("type")


def declared(source: Source, scope: Node, name: str) -> Iterator[Declared]:
    """The declarations of a name that stand in `scope`, in the order of the text."""
    return (
        each
        for each in declarations(source).get(name, ())
        if scope.start_byte <= each.node.start_byte and each.node.end_byte <= scope.end_byte
    )


@lru_cache(maxsize=24)
def declarations(source: Source) -> Mapping[str, Sequence[Declared]]:
    """Those of a whole file, members of classes left out."""
    found: dict[str, list[Declared]] = {}
    for node in nodes_below(source, source.root, *_TYPES):
        for declarator in node.children_by_field_name("declarator"):
            if (name := next(descendants(declarator, "identifier"), None)) is not None:
                found.setdefault(source.node_code(name), []).append(Declared(node, declarator))
    return found
