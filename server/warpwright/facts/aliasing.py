"""What a compiler cannot rule out: that two pointers of a kernel lead to the same memory.

nvcc tells pointers apart by `__restrict__` on one of the two and by nothing else; that one points to floats and the
other to integers does not count. What it cannot tell apart it loads again after every store, and stores before it loads
again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tree_sitter import Node

from warpwright.cuda import overlap as cuda
from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Access, AccessKind, Kernel, Space
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, node_at, parameters_of
from warpwright.syntax.source import Source, Span

_RESTRICT = re.compile("restrict", re.IGNORECASE)
_READ_ONLY_LOADS = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv")


def restrictable(kernel: Kernel) -> dict[str, Node]:
    """The names of parameters that are plain pointers, where `__restrict__` could stand: to no pointer, not volatile,
    not `__restrict__` already, not declared as arrays."""
    found: dict[str, Node] = {}
    for parameter in parameters_of(kernel.node) if kernel.node is not None else ():
        declarator, text = parameter.child_by_field_name("declarator"), kernel.source.node_code(parameter)
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        if declarator is None or declarator.type != "pointer_declarator" or name is None or name.type != "identifier":
            continue
        if not _RESTRICT.search(text) and "volatile" not in text:
            found[kernel.source.node_code(name)] = name
    return found


def restricted(kernel: Kernel) -> frozenset[str]:
    """The pointers that are `__restrict__`: nothing else leads to what they lead to."""
    return frozenset(p.name for p in kernel.parameters if p.is_pointer and _RESTRICT.search(p.type))


def has_volatile(kernel: Kernel) -> bool:
    """Whether the kernel reads or writes something volatile other than shared memory: no access of it can be moved."""
    text = kernel.source.code[kernel.span.start : kernel.span.end]
    return any(b"__shared__" not in line for line in text.splitlines() if b"volatile" in line)


def is_plain_load(access: Access) -> bool:
    """Whether it is a load of global memory that nothing marks as of memory that stays as it is, as `__ldg` does."""
    loads = access.kind is AccessKind.LOAD and access.space is Space.GLOBAL
    return loads and not access.expression.startswith(_READ_ONLY_LOADS)


def changes(access: Access) -> bool:
    return access.kind is not AccessKind.LOAD and access.space is Space.GLOBAL


def loop_around(span: Span) -> Node | None:
    """The innermost loop of the same function whose iterations run the code at a place; its `init` runs once."""
    child = node_at(span.source.root, span.start, span.end)
    for node in ancestors(child) if child is not None else ():
        if node.type in ("function_definition", "lambda_expression"):
            return None
        if node.type in LOOPS:
            initializer = node.child_by_field_name("initializer")
            if initializer is None or not initializer.start_byte <= span.start < initializer.end_byte:
                return node
    return None


def varies(span: Span, loop: Node) -> bool:
    """Whether a name in the text at a place gets values within a loop around it: assigned, stepped, or declared there
    from such a name or by a call.

    Example: `scale[i / pixels]` does in `for (int i = 0; i < n; i++)`, at however many iterations it is the same.
    """
    source = span.source
    node = node_at(source.root, span.start, span.end)
    if node is None:
        return True
    changed = _changed_in(source, loop)
    return any(source.node_code(name) in changed for name in descendants(node, "identifier"))


@lru_cache(maxsize=64)
def _changed_in(source: Source, loop: Node) -> frozenset[str]:
    """The names that get values within a loop, which is asked for each access in it."""
    changed = {source.node_code(name) for name in written_names(loop)}
    declared = [
        (source.node_code(name), {source.node_code(n) for n in descendants(value, "identifier")}, value)
        for declarator in descendants(loop, "init_declarator")
        if (name := declarator.child_by_field_name("declarator")) and (value := declarator.child_by_field_name("value"))
    ]
    grows = True
    while grows:
        before = len(changed)
        for word, used, value in declared:
            if used & changed or any(True for _ in descendants(value, "call_expression")):
                changed.add(word)
        grows = len(changed) > before
    return frozenset(changed)


def inside(access: Access, of: Span, node: Node) -> bool:
    """Whether an access stands in a node of the text that `of` is a part of."""
    return access.span.path == of.path and node.start_byte <= access.span.start < node.end_byte


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two pointers of a kernel that lead to the same elements, or may where it is not certain, by the names of their
    parameters. `place` is the file and line of the launch, or of the call that leads to it, where that is so."""

    one: str
    other: str
    place: str
    is_certain: bool


def known_overlaps(kernel: Kernel) -> tuple[Overlap, ...]:
    """The pointers that some launch found hands the same elements, or may, through whatever functions it is
    reached; what is certain comes first."""
    names = [p.name for p in kernel.parameters]
    found = _overlaps(tuple(kernel.sources.values()), kernel.name, tuple(p.is_pointer for p in kernel.parameters))
    pairs: dict[tuple[str, str], Overlap] = {}
    for each in sorted(found, key=lambda each: not each.is_certain):
        one, other = names[each.one], names[each.other]
        pairs.setdefault((one, other), Overlap(one, other, f"{Path(each.path).name}:{each.line}", each.is_certain))
    return tuple(pairs.values())


@lru_cache(maxsize=64)
def _overlaps(sources: tuple[Source, ...], kernel: str, pointers: tuple[bool, ...]) -> tuple[cuda.Overlap, ...]:
    return tuple(cuda.overlaps(sources, kernel, pointers))
