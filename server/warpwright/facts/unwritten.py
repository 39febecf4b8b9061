"""Reads of memory that nobody wrote: of shared memory that no thread of the block ever writes, or that the reading
thread alone writes, later; of global memory that the host left as it was allocated, before threads meet.

Example: `__shared__ int count; atomicAdd(&count, 1);` with nothing that sets it to zero. What is kept is certain: a
read whose address and conditions follow from the text; of shared memory, a block all of whose warps were followed to
their end, and an array that is only ever subscripted.
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
from warpwright.syntax.nodes import ancestors, descendants, enclosing, is_argument
from warpwright.syntax.source import Source, Span

_UPDATES = re.compile(r"atomic(?:Add|Sub|Min|Max|Inc|Dec|And|Or|Xor)(?:_block)?")
"""What reads before it writes."""
_TAKES = re.compile(r"make_\w+")
"""What takes the values of elements."""
_OVERWRITES = re.compile(r"\batomic(?:Exch|CAS)")
_Thread = tuple[Dim3, int]
_MANY: _Thread = (0, 0, 0), -1


@dataclass(slots=True)
class _Array:
    region: Region
    written: dict[int, _Thread] = field(default_factory=lambda: {})  # the one thread that writes each word, or _MANY
    read: dict[int, tuple[Span, _Thread]] = field(default_factory=lambda: {})  # the first place and thread of each
    stored: set[tuple[str, int, int]] = field(default_factory=set)  # places whose words are known
    updated: bool = False  # by an atomic function
    is_open: bool = False  # something may be written that is not known

    @property
    def is_private(self) -> bool:
        """Whether no thread stores what another reads: a place that does not where its words are known never does."""
        own = all(word in self.read and self.read[word][1] == thread for word, thread in self.written.items())
        return own and not self.is_open and not (self.updated and self.written)

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
        if where is None or pointer.basis != EXACT or pointer.soft:
            self.is_open = self.is_open or (kind is AccessKind.STORE and span.key not in self.stored)
            return
        first, pattern = where
        words = [
            ((position.block, position.warp * WARP + lane), (first + offset + word) // 4)
            for lane, offset in enumerate(pattern.offsets)
            if offset is not None
            for word in range(0, size, 4)
        ]
        self.updated = self.updated or kind is AccessKind.ATOMIC
        if kind is AccessKind.STORE:
            self.stored.add(span.key)
            for thread, word in words:
                self.written[word] = thread if self.written.get(word, thread) == thread else _MANY
        elif certain:
            for thread, word in words:
                if word not in self.written:
                    self.read.setdefault(word, (span, thread))

    def unwritten(self, launch: int) -> Iterator[UnwrittenRead]:
        """One for each place."""
        said: set[tuple[str, int, int]] = set()
        size = self.region.bytes
        for word, (span, thread) in sorted(self.read.items()):
            if word < 0 or (size is not None and 4 * word >= size):
                continue  # outside of the array
            if self.written.get(word, thread) == thread and span.key not in said:
                said.add(span.key)
                yield UnwrittenRead(span, self.region.name, self.region.space, launch, *thread, 4 * word)


@dataclass(slots=True)
class BlockMemory:
    """What a block's warps do to its shared arrays, and all warps to what the host left unfilled, word by word."""

    block: Dim3 | None = None
    warps: int = 0  # that were followed to their end
    arrays: dict[int, _Array] = field(default_factory=lambda: {})
    unfilled: dict[int, _Array] = field(default_factory=lambda: {})
    summed: dict[int, _Array] = field(default_factory=lambda: {})  # by atomics, of what the host left unfilled
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
        done: bool,
        alone: bool,
    ) -> None:
        """A request of a warp; one whose address is not known is nowhere. It is `certain` where the warp is sure to
        make it, `done` where it does at the sizes that are taken; `alone`: it has met no other threads before."""
        region = pointer.region
        if region is None:
            self.is_open = self.is_open or kind is not AccessKind.LOAD
        elif region.space is Space.SHARED:
            array = self.arrays.setdefault(id(region), _Array(region))
            array.access(span, kind, size, pointer, where, position, certain=certain)
        elif region.unfilled:
            array = self.unfilled.setdefault(id(region), _Array(region))
            overwrites = kind is AccessKind.ATOMIC and _OVERWRITES.search(span.text) is not None
            array.access(span, kind, size, pointer, where, position, certain=done and alone and not overwrites)
            if done and kind is AccessKind.ATOMIC and not overwrites:
                summed = self.summed.setdefault(id(region), _Array(region))
                summed.access(span, kind, size, pointer, where, position, certain=True)

    def in_block(self, source: Source, kernel: Node, warps: int, launch: int) -> Iterator[UnwrittenRead]:
        """Of shared memory, in a block of so many warps."""
        if not self.is_open and self.warps >= warps:
            for array in self.arrays.values():
                if not array.is_open and is_plain(source, kernel, array.region.name):
                    yield from array.unwritten(launch)

    def in_grid(self, source: Source, kernel: Node, launch: int) -> Iterator[UnwrittenRead]:
        """Of global memory, in all blocks that were begun: what no other thread writes, and what all threads only ever
        add to by atomics, whatever they met before."""
        for key, array in self.unfilled.items():
            found = list(array.unwritten(launch)) if array.is_private else []
            if not found and key in self.summed and _is_only_updated(source, kernel, array.region.name):
                found = list(self.summed[key].unwritten(launch))
            yield from found


def _is_only_updated(source: Source, kernel: Node, name: str) -> bool:
    """Whether a parameter is named where an atomic function reads and writes it, and nowhere else."""
    body = kernel.child_by_field_name("body")
    uses = [node for node in descendants(body, "identifier") if source.node_code(node) == name] if body else []
    return bool(uses) and all(is_argument(source, use, _UPDATES) for use in uses)


def is_plain(source: Source, kernel: Node, name: str) -> bool:
    """Whether an array is only ever subscripted, or a variable named, in the kernel's own text: no pointer is made of
    it, what is handed to atomic functions is what they read and write, and to what makes vectors elements alone."""
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
            call = enclosing(use, "call_expression")
            called = call.child_by_field_name("function") if call is not None else None
            name = source.node_code(called) if called is not None else ""
            takes_value = around.type == "argument_list" and is_subscripted and _TAKES.fullmatch(name) is not None
            return takes_value or _UPDATES.fullmatch(name) is not None
        elif around.type not in ("parenthesized_expression", "cast_expression"):
            return is_subscripted or around.type in ("assignment_expression", "update_expression", "binary_expression")
    return False
