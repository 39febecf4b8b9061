"""How many elements the memory has that a launch hands to a kernel's pointer."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import names
from warpwright.rewrites._formulas import formula
from warpwright.rewrites._grids import call_of
from warpwright.rewrites._movable import decided_by_directive
from warpwright.syntax.nodes import descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_ALLOCATORS = ("cudaMalloc", "cudaMallocManaged", "cudaMallocAsync")


def elements_allocated(kernel: Kernel, launch: Launch, parameter: str) -> int | None:
    """The number of elements, where the launch hands over a pointer of its function's own that one cudaMalloc sets, of
    a size that the text says; None for any other."""
    source, call = kernel.source, call_of(launch)
    given = uncommented(call.child_by_field_name("arguments")) if call is not None else []
    place = next((n for n, p in enumerate(kernel.parameters) if p.name == parameter), len(given))
    size = kernel.parameters[place].element_bytes if place < len(given) else None
    if call is None or not size or launch.span is None or launch.span.source is not source:
        return None
    argument, function = given[place], enclosing(call, "function_definition")
    if argument.type != "identifier" or function is None:
        return None
    name = source.node_text(argument)
    made = [c for c in descendants(function, "call_expression") if pointer_set_by(source, c) == name]
    written = [n for n in written_names(function) if source.node_text(n) == name]
    if (
        len(made) != 1
        or len(written) != 1
        or made[0].start_byte > call.start_byte
        or not _is_own(source, function, name)
    ):
        return None
    if decided_by_directive(kernel, made):
        return None
    amount = formula(source, uncommented(made[0].child_by_field_name("arguments"))[1])
    sizes = {symbol: _size_of(symbol, name, size) for symbol in amount.symbols} if amount is not None else {}
    known = {symbol: count for symbol, count in sizes.items() if count is not None}
    total = amount.value(known) if amount is not None and len(known) == len(sizes) else None
    return int(total) // size if total is not None and total > 0 and total % size == 0 else None


def pointer_set_by(source: Source, call: Node) -> str:
    """The variable in `cudaMalloc((void **)&d, bytes)`; empty for other calls."""
    arguments = uncommented(call.child_by_field_name("arguments"))
    if called_name(call, source) not in _ALLOCATORS or len(arguments) < 2:
        return ""
    match = re.fullmatch(
        r"(?:\(void\*\*\)|(?:reinterpret|static)_cast<void\*\*>\()?\(?&(\w+)\)*", _bare(source, arguments[0])
    )
    return match[1] if match else ""


def _bare(source: Source, node: Node) -> str:
    return re.sub(r"\s+", "", source.node_code(node))


def _is_own(source: Source, function: Node, name: str) -> bool:
    """Whether the function declares the pointer, once, so that nothing else sets it."""
    declared = [
        use
        for use in names(function, source, name)
        if use.parent is not None and use.parent.type == "pointer_declarator"
    ]
    return len(declared) == 1 and enclosing(declared[0], "declaration") is not None


def _size_of(symbol: str, name: str, size: int) -> int | None:
    """The value of `sizeof(float)` or `sizeof(*d)`; None for anything else."""
    inside = re.fullmatch(r"sizeof\(?([\w*:]+)\)?", symbol)
    if inside is None:
        return None
    spaced = re.sub(r"(?<=unsigned)(?=\w)|(?<=long)(?=\w)", " ", inside[1])
    kind = builtin_type(spaced)
    return size if inside[1] in (f"*{name}", f"{name}[0]") else kind.size if kind is not None else None
