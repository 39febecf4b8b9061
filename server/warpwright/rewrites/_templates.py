"""Types that a kernel's template takes: what they are at the launches, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, host_launches, structure_names
from warpwright.rewrites._locals import is_template_type, locals_of
from warpwright.syntax.encoding import encoded
from warpwright.syntax.names import template_arguments
from warpwright.syntax.nodes import descendants, enclosing, function_declarator, node_at
from warpwright.syntax.source import Source

_THREES = re.compile(r"(?:u?(?:char|short|int|long|longlong)|float|double)3")


def written_as(kernel: Kernel, name: str, resolved: str) -> str:
    """The type of a variable, or of an array's elements, for another variable of the kernel: as it is declared where
    the template takes it, else as it is known.

    Raises NoMatchError where the launches may set the type differently, or to what is not known.
    """
    declared = locals_of(kernel).types.get(name, resolved)
    if not is_template_type(kernel, declared):
        return resolved
    if not is_launched_alike(kernel, declared):
        raise NoMatchError(f"`{name}` is of the template's type {declared}, which launches may set differently.")
    return declared


def is_launched_alike(kernel: Kernel, declared: str) -> bool:
    """Whether all launches found give a type of the template's the same known number type."""
    place = _place(kernel, declared)
    written = [
        template_arguments(launch.span.code.partition("<<<")[0])
        for launch in host_launches(kernel)
        if launch.span is not None
    ]
    kinds = {builtin_type(given[place].strip()) if place < len(given) else None for given in written}
    return len(kinds) == 1 and None not in kinds


def _place(kernel: Kernel, declared: str) -> int:
    """Which of the template's parameters a type is, from 0."""
    around = kernel.node.parent if kernel.node is not None else None
    parameters = around.child_by_field_name("parameters") if around is not None else None
    each = [kernel.source.node_code(p) for p in parameters.named_children] if parameters is not None else []
    word = re.compile(rf"\b{re.escape(declared)}\b")
    return next((place for place, text in enumerate(each) if word.search(text)), len(each))


def launched_beside_structures(kernel: Kernel) -> bool:
    """Whether a function that launches a kernel, or one that calls a template that does, names a structure of the
    file's or a vector of three numbers: as the type of a template's elements, of which an aligned vector may not have a
    size that there is."""
    source = kernel.source
    kinds = ("struct_specifier", "class_specifier")
    own = {name for kind in descendants(source.root, *kinds) for name in structure_names(source, kind)}
    spans = [launch.span for launch in host_launches(kernel)]
    launches = (node_at(source.root, s.start, s.end) for s in spans if s is not None and s.source is source)
    waiting = [enclosing(node, "function_definition") for node in launches if node is not None]
    seen: set[int] = set()
    while waiting:
        around = waiting.pop()
        if around is None or around.start_byte in seen:
            continue
        seen.add(around.start_byte)
        words = set(re.findall(r"[A-Za-z_]\w*", source.node_code(around)))
        if words & own or any(map(_THREES.fullmatch, words)):
            return True
        if around.parent is not None and around.parent.type == "template_declaration":
            waiting += _naming(source, around)
    return False


def _naming(source: Source, function: Node) -> Iterator[Node | None]:
    """The functions in which the name of one occurs."""
    declarator = function_declarator(function)
    named = declarator.child_by_field_name("declarator") if declarator is not None else None
    if named is not None:
        for found in re.finditer(rb"\b%s\b" % re.escape(encoded(source.node_code(named))), source.code):
            use = node_at(source.root, *found.span())
            yield enclosing(use, "function_definition") if use is not None else None
