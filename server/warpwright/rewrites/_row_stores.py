"""What a kernel stores outside the loops that the lanes of a warp share is lane 0's to store, once."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, squeezed
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._row_loop import RowLoop, root_name, targets
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing, uncommented
from warpwright.syntax.source import Source


def guarded_stores(kernel: Kernel, block: Node, loops: list[RowLoop], lane: str, unit: str) -> list[TextEdit]:
    """`if (lane == 0)` before what changes memory outside the loops over a row; refuses what is read back."""
    source = kernel.source
    _require_not_read_back(kernel, block, loops)
    _require_one_writer(kernel, block, loops)
    edits: list[TextEdit] = []
    for target in targets(block, source):
        if any(loop.node.start_byte <= target.start_byte < loop.node.end_byte for loop in loops):
            continue
        if not _is_memory(kernel, block, target):
            continue
        statement = enclosing(target, "expression_statement")
        inner = target.parent if target.type != "call_expression" else target
        if statement is None or inner is None or inner.parent != statement:
            raise NoMatchError(
                f"What line {line_of(source, target)} stores is used as a value there, so lane 0 alone cannot do it."
            )
        around = statement.parent
        if around is not None and around.type == "compound_statement":
            indent = source.line_indent(statement.start_byte)
            first = source.line_text(line_of(source, statement)).strip().startswith(source.node_text(statement)[:8])
            gap = f"\n{indent}{unit}" if first else " "
            edits.append(TextEdit(statement.start_byte, statement.start_byte, f"if ({lane} == 0){gap}"))
        else:
            edits.append(TextEdit(statement.start_byte, statement.start_byte, f"{{ if ({lane} == 0) "))
            edits.append(TextEdit(statement.end_byte, statement.end_byte, " }"))
    return edits


def _is_memory(kernel: Kernel, block: Node, target: Node) -> bool:
    """Whether what is assigned is memory that other threads see: an atomic, or not a variable of the thread's own."""
    if target.type == "call_expression":
        return True
    if target.type == "identifier":
        return False
    name = root_name(kernel.source, target)
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    if name in pointers:
        return True
    for declarator in descendants(block, "array_declarator"):
        inner = declarator.child_by_field_name("declarator")
        if inner is not None and kernel.source.node_text(inner) == name:
            return False
    return (
        target.type != "field_expression"
        or "->" in kernel.source.node_code(target)
        or "[" in (kernel.source.node_code(target))
    )


def _require_not_read_back(kernel: Kernel, block: Node, loops: list[RowLoop]) -> None:
    """What is stored is read at the same element of the same loop alone: a lane does not see what another stores."""
    source = kernel.source
    changed = [t for t in targets(block, source) if t.type != "identifier" and _is_memory(kernel, block, t)]
    leads_to = led_to(kernel, block)
    stored: dict[str, set[str]] = {}
    for target in changed:
        inner = target
        if target.type == "call_expression":
            arguments = target.child_by_field_name("arguments")
            inner = uncommented(arguments)[0] if arguments is not None and arguments.named_children else target
        for name in leads_to.get(root_name(source, inner), {root_name(source, inner)}):
            stored.setdefault(name, set()).add(_element(source, target, loops))
    for use in descendants(block, "identifier"):
        name = source.node_text(use)
        read = stored.keys() & leads_to.get(name, {name})
        if not read or _makes_pointer(use):
            continue
        element: Node = use
        while element.parent is not None and element.parent.type in ("subscript_expression", "field_expression"):
            if element.parent.child_by_field_name("argument") != element:
                break
            element = element.parent
        if any(t.start_byte <= use.start_byte < t.end_byte for t in changed):
            continue
        same = all(stored[n] == {_element(source, element, loops)} for n in read) and element is not use
        shared = any(loop.node.start_byte <= use.start_byte < loop.node.end_byte for loop in loops)
        if not (same and shared):
            raise NoMatchError(
                f"`{name}` is stored to and read at line {line_of(source, use)}: a lane would read what another stores."
            )


def _require_one_writer(kernel: Kernel, block: Node, loops: list[RowLoop]) -> None:
    """No element is stored by one lane and then by another: an array is stored to in one of the loops, or in none."""
    source, leads_to = kernel.source, led_to(kernel, block)
    places: dict[str, dict[int, set[str]]] = {}
    for target in targets(block, source):
        if target.type in ("identifier", "call_expression") or not _is_memory(kernel, block, target):
            continue
        around = (n.start_byte for n in (loop.node for loop in loops) if n.start_byte <= target.start_byte < n.end_byte)
        place, root = next(around, -1), root_name(source, target)
        for name in leads_to.get(root, {root}):
            places.setdefault(name, {}).setdefault(place, set()).add(_element(source, target, loops))
    for name, stored in places.items():
        if len(stored) > 1 and len(set().union(*stored.values())) > 1:
            raise NoMatchError(f"`{name}` is stored to by more than one loop, or outside, too: by lanes in any order.")


def _element(source: Source, node: Node, loops: list[RowLoop]) -> str:
    """An element's text with the loop's variable and where that starts, the same for what one lane does alone."""
    text = squeezed(source.node_code(node))
    for loop in loops:
        if loop.node.start_byte <= node.start_byte < loop.node.end_byte:
            start = squeezed(source.node_code(loop.initial))
            return re.sub(rf"\b{re.escape(loop.step)}\b", f"@{start}@", text)
    return f"outside {text}"


def led_to(kernel: Kernel, block: Node) -> dict[str, set[str]]:
    """The kernel's pointers and its locals that are made of them, each with the parameters that it may lead to."""
    source = kernel.source
    found = {p.name: {p.name} for p in kernel.parameters if p.is_pointer}
    for declared in descendants(block, "init_declarator"):
        name, value = declared.child_by_field_name("declarator"), declared.child_by_field_name("value")
        declaration = source.node_code(declared.parent) if declared.parent is not None else ""
        pointer = name is not None and (
            name.type == "pointer_declarator" or re.match(r"(?:const )?auto\b", declaration)
        )
        if pointer and name is not None and value is not None:
            used = {source.node_text(n) for n in descendants(value, "identifier")}
            found[root_name(source, name)] = set().union(*(found[n] for n in used if n in found))
    return found


def _makes_pointer(use: Node) -> bool:
    """Whether a use stands in the declaration of a pointer or of the name itself, which reads nothing."""
    around = enclosing(use, "init_declarator", "subscript_expression", "declaration", "parameter_declaration")
    if around is None or around.type == "subscript_expression":
        return False
    declarator = around.child_by_field_name("declarator")
    return around.type != "init_declarator" or declarator is None or declarator.type == "pointer_declarator"
