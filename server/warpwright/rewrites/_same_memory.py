"""Whether two places may be one in memory: arrays made of each other, and elements that are not the thread's own."""

from __future__ import annotations

from collections.abc import Set

from tree_sitter import Node

from warpwright.rewrites._code import moved_pointer, names, squeezed
from warpwright.rewrites._elementwise import Elements
from warpwright.rewrites._layout import line_of
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source


def made_of_each_other(source: Source, function: Node, arrays: Set[str]) -> int | None:
    """The line of a function that sets one of the arrays to something of them, or to a part of what another one is a
    part of, as in `a = pool; b = pool + n;`; None where there is none."""
    roots: dict[str, set[str]] = {}
    for assigned in descendants(function, "init_declarator", "assignment_expression"):
        target = assigned.child_by_field_name("declarator") or assigned.child_by_field_name("left")
        value = assigned.child_by_field_name("value") or assigned.child_by_field_name("right")
        ends = [{source.node_text(n) for n in descendants(e, "identifier")} & arrays for e in (target, value) if e]
        if len(ends) == 2 and all(ends):
            return line_of(source, assigned)
        root = moved_pointer(source, value)
        if target is not None and root is not None:
            name = squeezed(source.node_code(target)).lstrip("*&")
            shared = {other for other, known in roots.items() if {name, other} <= arrays and root in known} - {name}
            if shared:
                return line_of(source, assigned)
            roots.setdefault(name, set()).update({root} | roots.get(root, set()))
    return None


def own_elements_only(source: Source, elements: Elements, name: str) -> int | None:
    """The line where an array is used other than as its thread's own element, `name[i]`; None where it never is."""
    for statement in elements.work:
        for use in names(statement, source, name):
            element = use.parent
            indices = element.child_by_field_name("indices") if element is not None else None
            own = (
                element is not None
                and element.type == "subscript_expression"
                and element.child_by_field_name("argument") == use
                and indices is not None
                and squeezed(source.node_code(indices)) == f"[{elements.index}]"
            )
            outer = element.parent if element is not None else None
            if not own or (outer is not None and outer.type == "pointer_expression"):
                return line_of(source, use)
    return None
