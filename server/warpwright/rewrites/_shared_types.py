"""Whether what an array holds can lie in shared memory as it is."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

_VECTORS = re.compile(r"(?:char|short|int|long|longlong|float|double|uchar|ushort|uint|ulong|ulonglong)[1-4]")


def require_plain(kernel: Kernel, array: str, written: str, *, is_structure: bool) -> None:
    """Elements can lie in shared memory, which has no constructors. Raises NoMatchError where that is not certain."""
    source = kernel.source
    if written == "auto":
        raise NoMatchError(f"What `{array}` holds is not known.")
    if not is_structure or builtin_type(written) is not None or _VECTORS.fullmatch(written):
        return
    plain = [
        s
        for s in descendants(source.root, "struct_specifier")
        if s.child_by_field_name("body") is not None and _names(source, s, written)
    ]
    inner = ("function_definition", "function_declarator", "base_class_clause", "struct_specifier", "union_specifier")
    if len(plain) != 1 or any(part != plain[0] for part in descendants(plain[0], *inner)):
        raise NoMatchError(f"`{array}` holds {written}, which is not known to be a plain structure.")


def _names(source: Source, structure: Node, written: str) -> bool:
    """Whether a structure has a name, or the name of a `typedef` around it."""
    name, around = structure.child_by_field_name("name"), structure.parent
    own = name is not None and source.node_text(name) == written.removeprefix("struct ")
    alias = around is not None and around.type == "type_definition"
    declared = around.children_by_field_name("declarator") if alias and around is not None else []
    return own or any(source.node_text(d) == written for d in declared)
