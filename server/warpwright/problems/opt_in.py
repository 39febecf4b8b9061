"""How much dynamic shared memory the host code lets a kernel have: more than CUDA gives without being asked.

A launch is refused whose static and dynamic shared memory are together more than 48 KB, unless the host code says
before it `cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)` (CUDA C++ Programming
Guide, "Compute Capabilities": kernels relying on more than 48 KB per block require an explicit opt-in).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.carveout import kernel_named
from warpwright.facts.model import Program
from warpwright.syntax.nodes import enclosing, uncommented
from warpwright.syntax.source import Source

_ATTRIBUTE = re.compile(rb"MaxDynamicSharedMemorySize|MAX_DYNAMIC_SHARED_SIZE_BYTES")
_SETTERS = frozenset({"cudaFuncSetAttribute", "hipFuncSetAttribute", "cuFuncSetAttribute"})
_SAID = ("comment", "string_content", "string_literal")


@dataclass(frozen=True, slots=True)
class OptIn:
    """A place that lets a kernel have more; `bytes` is what it says, None where that is not in the call itself."""

    source: Source
    bytes: Node | None


def opt_in(program: Program, kernel: str) -> OptIn | None:
    """The last place that may let `kernel` have more; None where the text has none.

    One that names no kernel of the program, as through a variable, and a macro that does it may be for any.
    """
    kernels = {each.name for each in program.kernels}
    found = None
    for source in program.sources.values():
        for named, size in _asked(source):
            if named == kernel or named not in kernels:
                found = OptIn(source, size)
    return found


def _asked(source: Source) -> Iterator[tuple[str, Node | None]]:
    for match in _ATTRIBUTE.finditer(source.data):
        word = source.root.descendant_for_byte_range(match.start(), match.end())
        if word is None or word.type in _SAID:
            continue
        call = enclosing(word, "call_expression")
        function = call.child_by_field_name("function") if call is not None else None
        given = uncommented(call.child_by_field_name("arguments")) if call is not None else []
        named = source.plain_text(function).removeprefix("::") if function is not None else ""
        if named in _SETTERS and len(given) == 3:
            yield kernel_named(source, given[0]), given[2]
        else:
            yield "", None
