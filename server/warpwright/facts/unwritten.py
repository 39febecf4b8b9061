"""Reads of shared memory that no thread of the block ever writes, or that the reading thread alone writes, later.

Example: `__shared__ int count; atomicAdd(&count, 1);` with nothing that sets it to zero. What is kept is certain: a
block all of whose warps were followed to their end, an array that is only ever subscripted, and a read whose address
and conditions follow from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from warpwright.facts.memory import Pattern
from warpwright.facts.model import WARP, AccessKind, Dim3, Space, UnwrittenRead
from warpwright.facts.position import Position
from warpwright.facts.values import EXACT, Region, Value
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source, Span

_UPDATES = re.compile(r"atomic(?:Add|Sub|Min|Max|Inc|Dec|And|Or|Xor)(?:_block)?")
"""What reads before it writes."""
_MANY = -1
_Words = dict[int, tuple[Span, int]]


@dataclass(slots=True)
class _Array:
    region: Region
    written: dict[int, int] = field(default_factory=lambda: {})  # the one thread that writes each word, or _MANY
    read: _Words = field(default_factory=lambda: {})  # the first place and thread of each word
    is_open: bool = False  # something may be written that is not known


@dataclass(slots=True)
class BlockMemory:
    """What a block's warps do to its shared arrays, word by word."""

    block: Dim3 | None = None
    warps: int = 0  # that were followed to their end
    arrays: dict[int, _Array] = field(default_factory=lambda: {})
    is_open: bool = False

    def begin_block(self, block: Dim3) -> None:
        self.block, self.warps, self.is_open = block, 0, False
        self.arrays.clear()

    def access(
        self,
        span: Span,
        kind: AccessKind,
        size: int,
        pointer: Value,
        where: tuple[int, Pattern] | None,
        position: Position,
        *,
        certain: bool,
    ) -> None:
        """A request of a warp; one whose address is not known is nowhere. It is `certain` where the warp is sure to
        make it."""
        region = pointer.region
        if region is None:
            self.is_open = self.is_open or kind is not AccessKind.LOAD
        elif region.space is Space.SHARED:
            array = self.arrays.setdefault(id(region), _Array(region))
            if where is None or pointer.basis != EXACT or pointer.soft:
                array.is_open = array.is_open or kind is AccessKind.STORE
                return
            first, pattern = where
            words = [
                (lane, (first + offset + word) // 4)
                for lane, offset in enumerate(pattern.offsets)
                if offset is not None
                for word in range(0, size, 4)
            ]
            if kind is AccessKind.STORE:
                for lane, word in words:
                    thread = position.warp * WARP + lane
                    array.written[word] = thread if array.written.get(word, thread) == thread else _MANY
            elif certain:
                for lane, word in words:
                    if word not in array.written:
                        array.read.setdefault(word, (span, position.warp * WARP + lane))

    def unwritten(self, source: Source, kernel: Node, warps: int, launch: int) -> Iterator[UnwrittenRead]:
        """One for each array and place, of a block of so many warps."""
        if self.block is None or self.is_open or self.warps < warps:
            return
        said: set[tuple[str, int, int]] = set()
        for array in self.arrays.values():
            if array.is_open or not _is_plain(source, kernel, array.region.name):
                continue
            for word, (span, thread) in sorted(array.read.items()):
                if array.written.get(word, thread) == thread and span.key not in said:
                    said.add(span.key)
                    yield UnwrittenRead(span, array.region.name, launch, self.block, thread, 4 * word)


def _is_plain(source: Source, kernel: Node, name: str) -> bool:
    """Whether an array is only ever subscripted, or a variable named, in the kernel's own text: no pointer is made of
    it, and what is handed to calls is what atomic functions read and write."""
    uses = [node for node in descendants(kernel, "identifier") if source.node_code(node) == name]
    return bool(uses) and all(_is_plain_use(source, use) for use in uses)


def _is_plain_use(source: Source, use: Node) -> bool:
    is_subscripted = is_declared = False
    for around in ancestors(use):
        if around.type == "subscript_expression" and around.child_by_field_name("argument") in (use, None):
            is_subscripted, use = True, around
        elif around.type == "subscript_expression":
            return True  # of another array
        elif around.type.endswith("declarator"):
            is_declared = around.type in ("array_declarator", "init_declarator")
            return (is_declared and around.child_by_field_name("value") != use) or is_subscripted
        elif around.type == "declaration":
            return True
        elif around.type in ("pointer_expression", "argument_list"):
            call = next((each for each in ancestors(use) if each.type == "call_expression"), None)
            called = call.child_by_field_name("function") if call is not None else None
            return called is not None and _UPDATES.fullmatch(source.node_code(called)) is not None
        elif around.type not in ("parenthesized_expression", "cast_expression"):
            return is_subscripted or around.type in ("assignment_expression", "update_expression", "binary_expression")
    return False
