"""What a compiler cannot rule out: that two pointers of a kernel lead to the same memory.

nvcc tells pointers apart by `__restrict__` on one of the two and by nothing else; that one points to floats and the
other to integers does not count. What it cannot tell apart it loads again after every store, and stores before it loads
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Access, AccessKind, Kernel, Launch, Space
from warpwright.syntax.nodes import ancestors, descendants, launch_configuration, node_at, parameters_of, uncommented
from warpwright.syntax.source import Source, Span

LOOPS = ("for_statement", "while_statement", "do_statement")
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
    return any(source.node_code(name) in changed for name in descendants(node, "identifier"))


def inside(access: Access, of: Span, node: Node) -> bool:
    """Whether an access stands in a node of the text that `of` is a part of."""
    return access.span.path == of.path and node.start_byte <= access.span.start < node.end_byte


def argument_texts(launch: Launch) -> list[str]:
    """What a launch hands to the kernel, without the casts around it."""
    if launch.span is None:
        return []
    source = launch.span.source
    call = node_at(source.root, launch.span.start, launch.span.end)
    if call is None or launch_configuration(call) is None:
        return []
    arguments = uncommented(call.child_by_field_name("arguments"))
    return ["".join(source.node_code(_without_casts(source, argument)).split()) for argument in arguments]


def _without_casts(source: Source, node: Node) -> Node:
    """`a` for `(const float *)a`, `static_cast<const float *>(a)` and `&a[0]`."""
    inner: Node | None = None
    match node.type:
        case "cast_expression":
            inner = node.child_by_field_name("value")
        case "parenthesized_expression":
            inner = next(iter(uncommented(node)), None)
        case "call_expression" if re.match(r"(?:static|const|reinterpret)_cast\b", source.node_code(node)):
            inner = next(iter(uncommented(node.child_by_field_name("arguments"))), None)
        case "pointer_expression" if re.fullmatch(r"&\w+\[0\]", source.node_code(node)):
            element = node.child_by_field_name("argument")
            inner = element.child_by_field_name("argument") if element is not None else None
    return _without_casts(source, inner) if inner is not None else node


def handed_the_same(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Pairs of pointer parameters that some launch in sight gives one argument: they do overlap."""
    names = [p.name if p.is_pointer else "" for p in kernel.parameters]
    for launch in kernel.launches:
        seen: dict[str, str] = {}
        for name, text in zip(names, argument_texts(launch), strict=False):
            if name and text in seen:
                yield seen[text], name
            elif name and text not in ("NULL", "nullptr", "0"):
                seen[text] = name
