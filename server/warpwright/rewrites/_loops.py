"""Counted loops: `for (int i = 0; i < n; i++)` in its usual spellings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import names, squeezed
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """A loop whose variable is declared in it, an integer of 32 or 64 bits, from `start` while it is less than `bound`.

    `step` is what is added after each iteration, None for 1.
    """

    node: Node
    name: str
    type: str
    start: Node
    bound: Node
    step: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class Counter:
    """The variable of a loop, declared in it, an integer of 32 or 64 bits; `step` is what is added, None for 1."""

    name: str
    type: str
    start: Node
    update: Node
    step: Node | None


def counter_of(source: Source, node: Node) -> Counter | None:
    """What a `for` counts with; None where it declares no such variable or steps it otherwise."""
    initializer, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
    if initializer is None or update is None:
        return None
    kind = initializer.child_by_field_name("type") if initializer.type == "declaration" else None
    declared = initializer.children_by_field_name("declarator") if kind is not None else []
    if kind is None or len(declared) != 1 or declared[0].type != "init_declarator":
        return None
    name, start = declared[0].child_by_field_name("declarator"), declared[0].child_by_field_name("value")
    known = builtin_type(source.node_text(kind))
    if name is None or name.type != "identifier" or start is None or known is None or not known.is_integer:
        return None
    steps = _steps(source, update, source.node_text(name)) if (known.size or 0) >= 4 else []
    return Counter(source.node_text(name), source.node_text(kind), start, update, steps[0]) if steps else None


def loop_start(kernel: Kernel, types: Mapping[str, str], initializer: Node | None) -> tuple[str, str, Node | None]:
    """The variable of `int i = start` or `i = start`, an integer of 32 or 64 bits, its type, and where it starts; None
    where it is none. `types` are those of the kernel's variables, as written."""
    source = kernel.source
    if initializer is None:
        return "", "", None
    if initializer.type == "declaration":
        declared = initializer.children_by_field_name("declarator")
        kind = initializer.child_by_field_name("type")
        if len(declared) != 1 or declared[0].type != "init_declarator" or kind is None:
            return "", "", None
        name, value = declared[0].child_by_field_name("declarator"), declared[0].child_by_field_name("value")
        written = kernel.number_types.get(source.node_text(kind), source.node_text(kind))
    else:
        name, value = initializer.child_by_field_name("left"), initializer.child_by_field_name("right")
        operator = initializer.child_by_field_name("operator")
        if initializer.type != "assignment_expression" or operator is None or source.node_text(operator) != "=":
            return "", "", None
        written = types.get(source.node_text(name), "") if name is not None else ""
    known = builtin_type(written)
    if name is None or name.type != "identifier" or known is None or not known.is_integer or (known.size or 0) < 4:
        return "", "", None
    return source.node_text(name), written, value


def counted_loop(source: Source, node: Node) -> CountedLoop | None:
    """The parts of a `for`; None where it is not such a loop."""
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    counter = counter_of(source, node)
    if counter is None or condition is None or body is None:
        return None
    left, bound = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    less = condition.type == "binary_expression" and operator is not None and source.node_text(operator) == "<"
    if not less or left is None or bound is None or source.node_text(left) != counter.name:
        return None
    return CountedLoop(node, counter.name, counter.type, counter.start, bound, counter.step, body)


def counted_outside(source: Source, types: Mapping[str, str], block: Node, node: Node) -> CountedLoop | None:
    """`for (j = 0; j < n; j++)` with a variable that is declared before, and that nothing reads behind the loop.

    `types` are those of the kernel's variables, as written.
    """
    start, condition, update = (node.child_by_field_name(field) for field in ("initializer", "condition", "update"))
    inside = node.child_by_field_name("body")
    target, value = (start.child_by_field_name(f) if start is not None else None for f in ("left", "right"))
    if start is None or start.type != "assignment_expression" or target is None or value is None or inside is None:
        return None
    name = source.node_text(target)
    known = builtin_type(types.get(name, ""))
    left, bound = (condition.child_by_field_name(f) if condition is not None else None for f in ("left", "right"))
    tests = condition is not None and any(c.type == "<" for c in condition.children)
    if known is None or not known.is_integer or (known.size or 0) < 4 or left is None or bound is None or not tests:
        return None
    steps = squeezed(source.node_code(update)) if update is not None else ""
    if source.node_text(left) != name or steps not in (f"{name}++", f"++{name}", f"{name}+=1"):
        return None
    if any(use.start_byte > node.end_byte for use in names(block, source, name)):
        return None
    return CountedLoop(node, name, types[name], value, bound, None, inside)


def _steps(source: Source, update: Node, name: str) -> list[Node | None]:
    """What the update adds, None for 1; an empty list where it does something else."""
    text, v = squeezed(source.node_code(update)), re.escape(name)
    if re.fullmatch(rf"{v}\+\+|\+\+{v}|{v}\+=1|{v}={v}\+1", text):
        return [None]
    return [update.child_by_field_name("right")] if re.match(rf"{v}\+=", text) else []


def header_of(source: Source, loop: Node) -> str:
    """A `for` or `while` up to the bracket that ends its header: what follows may be a comment."""
    body = loop.child_by_field_name("body")
    until = body.start_byte if body is not None else loop.end_byte
    ends = [c.end_byte for n in (loop, *loop.named_children) for c in n.children if c.type == ")"]
    return source.text(loop.start_byte, max((end for end in ends if end <= until), default=until))


def only_statement(body: Node) -> Node | None:
    """The one statement of a loop's body, with or without braces; None where there are more."""
    inner = [c for c in body.named_children if c.type != "comment"] if body.type == "compound_statement" else [body]
    return inner[0] if len(inner) == 1 else None


def pragmas_before(source: Source, node: Node) -> list[Node]:
    """The directives right before a statement, such as `#pragma unroll`, in order of the text."""
    found: list[Node] = []
    before = node.prev_named_sibling
    while before is not None and before.type == "preproc_call":
        found.insert(0, before)
        before = before.prev_named_sibling
    return found
