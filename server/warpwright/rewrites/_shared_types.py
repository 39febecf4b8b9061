"""Whether what an array holds can lie in shared memory as it is."""

from __future__ import annotations

import re

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, structure_names
from warpwright.syntax.nodes import descendants

_VECTORS = re.compile(r"(?:char|short|int|long|longlong|float|double|uchar|ushort|uint|ulong|ulonglong)[1-4]")


def require_plain(kernel: Kernel, array: str, written: str, *, is_structure: bool) -> None:
    """Elements can lie in shared memory, which has no constructors. Raises NoMatchError where that is not certain."""
    source = kernel.source
    if written == "auto":
        raise NoMatchError(f"What `{array}` holds is not known.")
    if not is_structure or builtin_type(written) is not None or _VECTORS.fullmatch(written):
        return
    named = {written, written.removeprefix("struct ")}
    plain = [
        s
        for s in descendants(source.root, "struct_specifier")
        if s.child_by_field_name("body") is not None and named & set(structure_names(source, s))
    ]
    inner = ("function_definition", "function_declarator", "base_class_clause", "struct_specifier", "union_specifier")
    if len(plain) != 1 or any(part != plain[0] for part in descendants(plain[0], *inner)):
        raise NoMatchError(f"`{array}` holds {written}, which is not known to be a plain structure.")


def element_type(kernel: Kernel, array: str) -> str:
    """The type of the elements of an array that the kernel is handed, as it is written."""
    parameter = next(p for p in kernel.parameters if p.name == array)
    skipped = ("const", "__restrict__", "__restrict", "restrict", array)
    return " ".join(word for word in parameter.type.replace("*", " ").split() if word not in skipped)
