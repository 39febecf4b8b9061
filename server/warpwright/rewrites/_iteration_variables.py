"""Which variables an iteration of a loop has for itself, and which are there around it."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import names
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, uncommented
from warpwright.syntax.source import Source


def own_variables(inside: Node, source: Source) -> set[str]:
    """The variables of an iteration's own, but for pointers, references and static ones."""
    found: set[str] = set()
    for declaration in descendants(inside, "declaration"):
        if re.search(r"\bstatic\b|__shared__", source.node_code(declaration)):
            continue
        for child in declaration.children_by_field_name("declarator"):
            inner = child
            while inner.type in ("init_declarator", "array_declarator"):
                following = inner.child_by_field_name("declarator")
                if following is None:
                    break
                inner = following
            if inner.type == "identifier":
                found.add(source.node_text(inner))
    return found


def set_anew(kernel: Kernel, loop: Node, inside: Node) -> set[str]:
    """The variables from around a loop that each iteration sets before it uses them, and that nothing uses afterwards:
    `d` of `float d; for (...) { d = x[j] - own; sum += d * d; }`."""
    source, function = kernel.source, enclosing(loop, "function_definition")
    statements = uncommented(inside) if inside.type == "compound_statement" else [inside]
    seen: set[str] = set()
    found: set[str] = set()
    for statement in statements:
        whole = (
            uncommented(statement)[0] if statement.type == "expression_statement" and uncommented(statement) else None
        )
        target = whole.child_by_field_name("left") if whole is not None else None
        value = whole.child_by_field_name("right") if whole is not None else None
        plain = (
            whole is not None and whole.type == "assignment_expression" and any(c.type == "=" for c in whole.children)
        )
        if plain and target is not None and value is not None and target.type == "identifier":
            name = source.node_text(target)
            if name not in seen and not any(names(value, source, name)):
                found.add(name)
        seen |= {source.node_text(n) for n in descendants(statement, "identifier")}
    nested = enclosing(loop, *LOOPS) is not None
    shared = {array.name for array in kernel.shared_arrays}
    for name in found - shared:
        declared = 0
        for use in names(function, source, name) if function is not None else ():
            parent = use.parent
            own = parent is not None and parent.type in ("declaration", "init_declarator", "parameter_declaration")
            within = loop.start_byte <= use.start_byte < loop.end_byte
            if own and parent is not None and use in parent.children_by_field_name("declarator"):
                declared += 1
            elif (parent is not None and parent.type.endswith(("pointer_expression", "declarator"))) or (
                not within and (nested or use.start_byte > loop.end_byte)
            ):
                declared = -1
                break
        if declared != 1:
            found = found - {name}
    return found - shared


def visible_at(kernel: Kernel, loop: Node) -> set[str]:
    """The names of the variables that are declared around a loop, and of the parameters."""
    found = {p.name for p in kernel.parameters}
    for around in ancestors(loop):
        if around.type in ("compound_statement", "for_statement"):
            for child in around.named_children:
                if child.type == "declaration" and child.start_byte < loop.start_byte:
                    found |= own_variables(child, kernel.source)
        if around.type == "function_definition":
            break
    return found
