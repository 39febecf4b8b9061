"""Loops in which each thread of a block walks over a chunk of its own, and the same with lanes side by side.

Element `chunk * threadIdx.x + k`, for k below the chunk's size, becomes `threadIdx.x + k * blockDim.x`: both number the
elements of a block's chunks from 0, so that the block works on the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from warpwright.algebra.sums import as_number, symbols
from warpwright.cuda.functions import called_name
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, bare, body, names
from warpwright.rewrites._indices import Indices, Polynomial, combined
from warpwright.rewrites._loops import counter_of
from warpwright.rewrites._names import reached_names
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

THREAD = "threadIdx.x"


@dataclass(frozen=True, slots=True)
class Chunk:
    """`for (k = 0; k < size; k++)` over elements `size * threadIdx.x + k`, or `for (i = start; i < start + size; i++)`
    over i itself, where start holds `size * threadIdx.x`.

    `element` is what an iteration works on, `places` the expressions of the loop that are it and something that is one
    for the block, `own` the variables that hold such a place. `start` is None in the first form.
    """

    indices: Indices
    node: Node
    name: str
    type: str
    update: Node
    body: Node
    size: Polynomial
    start: Node | None
    ends: tuple[Node, ...]
    element: Polynomial
    places: tuple[Node, ...] = ()
    own: frozenset[str] = frozenset()

    def sign(self, value: Polynomial | None) -> int | None:
        """1 or -1 where a sum is the element, or less the element, and something that is one for the block; 0 where it
        is one for the block; None for anything else."""
        for sign in (1, -1, 0):
            moved = {product: n * sign for product, n in self.element.items()} if sign else {}
            rest = combined("-", value, moved) if value is not None else None
            if rest is not None and self.is_one_for_block(rest):
                return sign
        return None

    def is_one_for_block(self, value: Polynomial) -> bool:
        words = symbols(value)
        return self.name not in words and all(one_for_block(self.indices, word) for word in words)


def one_for_block(indices: Indices, name: str) -> bool:
    """Whether a name means one value for all threads of a block that differ in threadIdx.x alone, in its
    scope."""
    if "." in name:
        return name != THREAD
    read = indices.named(name)
    if read is not None and read != {(name,): 1}:
        return all(one_for_block(indices, word) for word in symbols(read))
    variables, block = indices.variables, body(indices.kernel)
    if name in variables.changed or (name in variables.types and not variables.is_fixed(name)):
        return False
    value = variables.values.get(name)
    return value is None or block is None or "threadIdx" not in reached_names(block, indices.kernel.source, value)


def chunk_of(indices: Indices, node: Node) -> Chunk:
    """The parts of such a loop. Raises NoMatchError where it is none."""
    source = indices.kernel.source
    counter, condition = counter_of(source, node), node.child_by_field_name("condition")
    inside = node.child_by_field_name("body")
    if counter is None or counter.step is not None or condition is None or inside is None:
        raise NoMatchError(f"The loop at line {source.position(node.start_byte)[0]} does not count up by one.")
    tests = list(_conjuncts(source, condition))
    start = indices.read(counter.start)
    size, rest = _by_thread(start) if start is not None else (None, None)
    if start is None or size is None or rest is None:
        raise NoMatchError(f"Where the loop over {counter.name} starts is not a plain number.")
    ends: list[Node] = []
    for left, right in tests:
        if source.node_text(left) == counter.name:
            ends += _least(indices, right)
    if not size:
        bounds = [end for end in ends if as_number(start) == 0 and indices.read(end)]
        size = next((s for end in bounds if (s := indices.read(end)) is not None), {})
        element = combined("*", {(THREAD,): 1}, size) or {}
        element = combined("+", element, {(counter.name,): 1}) or {}
    else:
        bounds = [end for end in ends if (s := indices.read(end)) is not None and combined("-", s, start) == size]
        element = {(counter.name,): 1}
    if len(bounds) != 1 or not size:
        raise NoMatchError(f"The loop over {counter.name} does not run over a chunk of the thread's own.")
    own_start = counter.start if _by_thread(start)[0] else None
    draft = Chunk(
        indices, node, counter.name, counter.type, counter.update, inside, size, own_start, (bounds[0],), element
    )
    parts = [inside, *(left for left, _ in tests if own_start is None)]
    places = tuple(p for part in parts for p in _places(draft, part)) if own_start is None else ()
    own = {name for name in indices.variables.values if draft.sign(indices.named(name)) in (1, -1)}
    own |= {counter.name} if own_start is not None else set()
    chunk = replace(draft, places=places, own=frozenset(own))
    if not chunk.is_one_for_block(size):
        raise NoMatchError(f"How long the chunk of the loop over {counter.name} is depends on the thread.")
    _require_ends(chunk, tests, ends)
    if own_start is None and not places:
        raise NoMatchError(f"The loop over {counter.name} uses no element of a chunk of the thread's own.")
    return chunk


def _conjuncts(source: Source, condition: Node) -> Iterator[tuple[Node, Node]]:
    """The two sides of each `a < b` that a condition joins by `&&`. Raises NoMatchError for other tests."""
    condition = bare(condition)
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if condition.type == "binary_expression" and left is not None and right is not None and operator is not None:
        if operator.type == "&&":
            yield from _conjuncts(source, left)
            yield from _conjuncts(source, right)
            return
        if operator.type in ("<", ">"):
            yield (left, right) if operator.type == "<" else (right, left)
            return
    raise NoMatchError(f"The loop condition `{source.node_text(condition)}` is not a less-than comparison.")


def _least(indices: Indices, bound: Node) -> list[Node]:
    """The numbers of which a bound is the least: of `min(a, b)`, itself or as a variable; else the bound alone."""
    source, value = indices.kernel.source, bound
    if value.type == "identifier":
        value = indices.variables.values.get(source.node_text(value), value)
    if value.type == "call_expression" and called_name(value, source) in ("min", "umin"):
        return uncommented(value.child_by_field_name("arguments"))
    return [bound]


def _require_ends(chunk: Chunk, tests: list[tuple[Node, Node]], ends: list[Node]) -> None:
    """What else ends the loop does so for all elements from a number on."""
    indices, source = chunk.indices, chunk.indices.kernel.source
    for left, right in tests:
        counted = source.node_text(left) == chunk.name
        if not counted and chunk.sign(indices.read(left)) != 1:
            raise NoMatchError(f"The loop ends where `{source.node_text(left)}` is not less, which is not an element.")
        for end in _least(indices, right) if counted else [right]:
            read = indices.read(end)
            if end in chunk.ends:
                continue
            if read is None or not chunk.is_one_for_block(read) or (counted and chunk.start is None):
                raise NoMatchError(f"The bound `{source.node_text(end)}` of the loop is not one number for the block.")


def _by_thread(value: Polynomial) -> tuple[Polynomial | None, Polynomial]:
    """By how much a sum grows with threadIdx.x, and the rest of it; None where that is no sum of products."""
    factor: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    for product, number in value.items():
        others = tuple(name for name in product if name != THREAD)
        if len(product) - len(others) > 1:
            return None, {}
        (factor if len(others) < len(product) else rest)[others] = number
    return factor, rest


def _places(chunk: Chunk, node: Node) -> Iterator[Node]:
    """The largest expressions below a node that are the element and something that is one for the block."""
    kinds = ("binary_expression", "parenthesized_expression", "identifier", "cast_expression")
    if node.type in kinds and chunk.sign(chunk.indices.read(node)) in (1, -1):
        if node.type != "identifier":
            yield node
        return
    for child in node.named_children:
        yield from _places(chunk, child)


def side_by_side(chunk: Chunk) -> list[TextEdit]:
    """Edits that give the element of a chunk's loop the other number. Raises NoMatchError where the text is not made
    of a product with the chunk's size."""
    source = chunk.indices.kernel.source
    writer = _Writer(chunk)
    if chunk.start is not None:
        writer.thread(chunk.start)
        writer.bounds()
        writer.edits[chunk.update.start_byte, chunk.update.end_byte] = f"{chunk.name} += blockDim.x"
    for place in chunk.places:
        writer.thread(place)
        for use in names(place, source, chunk.name):
            writer.counter(use)
    writer.require_all_uses()
    return [TextEdit(start, end, text) for (start, end), text in sorted(writer.edits.items())]


@dataclass(slots=True)
class _Writer:
    """Collects edits by the bytes that they replace, so that a variable's value is edited once. `touched` are the
    variables that hold another number then, `read` the expressions in which they may stand."""

    chunk: Chunk
    edits: dict[tuple[int, int], str] = field(default_factory=lambda: {})
    touched: set[str] = field(default_factory=set)
    read: list[Node] = field(default_factory=lambda: [])

    @property
    def indices(self) -> Indices:
        return self.chunk.indices

    @property
    def source(self) -> Source:
        return self.chunk.indices.kernel.source

    def bounds(self) -> None:
        """What ends the loop, and the variables that hold it."""
        condition = self.chunk.node.child_by_field_name("condition")
        for use in descendants(condition, "identifier") if condition is not None else ():
            value = self.indices.variables.values.get(self.source.node_text(use))
            if value is not None and any(value.start_byte <= e.start_byte < value.end_byte for e in self.chunk.ends):
                self.touched.add(self.source.node_text(use))
                self.read.append(value)
        for end in self.chunk.ends:
            self.end(end)

    def thread(self, node: Node) -> None:
        """`size * threadIdx.x` within an expression becomes `threadIdx.x`; a variable of the loop is edited where it is
        declared."""
        if node.type == "identifier" and self.source.node_text(node) in self.chunk.own:
            return
        inner = self._value(node)
        if inner is not node:
            self.thread(inner)
            return
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if node.type == "cast_expression":
            value = node.child_by_field_name("value")
            if value is not None:
                self.thread(value)
                return
        elif node.type == "binary_expression" and left is not None and right is not None and operator is not None:
            with_thread = [side for side in (left, right) if self._factor(side)]
            if operator.type in ("+", "-") and len(with_thread) == 1:
                self.thread(with_thread[0])
                return
            if operator.type in ("*", "<<") and len(with_thread) == 1 and self._factor(with_thread[0]) == {(): 1}:
                self._product(node, operator.type, with_thread[0], right if with_thread[0] == left else left)
                return
        text = self.source.node_text(node)
        raise NoMatchError(f"`{text}` is not written as a product of the thread's index and the chunk's size.")

    def _value(self, node: Node) -> Node:
        """What is in parentheses, or the value of a variable, whose every use has to be seen then."""
        if node.type == "parenthesized_expression" and len(uncommented(node)) == 1:
            return uncommented(node)[0]
        if node.type == "identifier":
            name = self.source.node_text(node)
            value = self.indices.variables.values.get(name)
            if value is not None:
                self.touched.add(name)
                self.read.append(value)
                return value
        return node

    def _factor(self, node: Node) -> Polynomial | None:
        value = self.indices.read(node)
        return _by_thread(value)[0] if value is not None else None

    def _product(self, node: Node, operator: str, thread: Node, size: Node) -> None:
        source = self.source
        alone, others = source.node_text(thread), self._without_thread(thread)
        if others is None:
            self.edits[node.start_byte, node.end_byte] = alone
            return
        sides = (others, source.node_text(size)) if thread.start_byte < size.start_byte else (
            source.node_text(size), others)  # fmt: skip
        text = f" {operator} ".join(sides)
        new = f"{f'({text})' if operator == '<<' else text} + {self._cast(thread)}{THREAD}"
        parent = node.parent
        held = parent is not None and parent.type in ("parenthesized_expression", "init_declarator", "argument_list")
        added = (
            parent is not None
            and parent.type == "binary_expression"
            and any(c.type == "+" or (c.type == "-" and c.start_byte > node.start_byte) for c in parent.children)
        )
        subscript = parent is not None and parent.type == "subscript_argument_list"
        self.edits[node.start_byte, node.end_byte] = new if held or added or subscript else f"({new})"

    def _without_thread(self, node: Node) -> str | None:
        """An expression less threadIdx.x; None where it is that alone."""
        source, inner = self.source, node
        if self.indices.read(node) == {(THREAD,): 1}:
            return None
        while inner.type in ("parenthesized_expression", "cast_expression"):
            held = inner.child_by_field_name("value") or next(iter(uncommented(inner)), None)
            if held is None:
                break
            inner = held
        sides = [inner.child_by_field_name("left"), inner.child_by_field_name("right")]
        plus = any(c.type == "+" for c in inner.children)
        for side, other in (sides, sides[::-1]):
            if plus and side is not None and other is not None and self.indices.read(side) == {(THREAD,): 1}:
                product = not re.search(r"[^\w\s.*()]", source.node_code(other))
                if node.type == "parenthesized_expression" and inner.parent == node and product:
                    return source.node_text(other)
                return source.text(node.start_byte, inner.start_byte) + source.node_text(other) + source.text(
                    inner.end_byte, node.end_byte
                )  # fmt: skip
        if inner.type == "identifier":
            alone = f"({source.node_text(inner)} - {self._cast(node)}{THREAD})"
            return source.text(node.start_byte, inner.start_byte) + alone + source.text(inner.end_byte, node.end_byte)
        text = source.node_text(node)
        raise NoMatchError(f"`{text}` is not written as a sum with the thread's index.")

    def end(self, node: Node) -> None:
        """`start + size` becomes `start + size * blockDim.x`."""
        inner = self._value(node)
        if inner is not node:
            self.end(inner)
            return
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "binary_expression" and left is not None and right is not None:
            for start, size in ((left, right), (right, left)):
                if any(c.type == "+" for c in node.children) and self.indices.read(size) == self.chunk.size:
                    self.read.append(start)
                    self.thread(start)
                    text = self.source.node_text(size)
                    plain = size.type in ("identifier", "number_literal", "parenthesized_expression")
                    new = f"{text if plain else f'({text})'} * {self._cast(node)}blockDim.x"
                    self.edits[size.start_byte, size.end_byte] = new
                    return
        text = self.source.node_text(node)
        raise NoMatchError(f"`{text}` is not written as the chunk's start and its size.")

    def counter(self, use: Node) -> None:
        parent, name = use.parent, self.source.node_text(use)
        operators = {c.type for c in parent.children} if parent is not None else set()
        plain = parent is not None and (
            parent.type in ("parenthesized_expression", "cast_expression")
            or (parent.type == "binary_expression" and operators & {"+", "-"})
        )
        if not plain:
            line = self.source.position(use.start_byte)[0]
            raise NoMatchError(f"`{name}` at line {line} is not added to the chunk's start.")
        self.edits[use.start_byte, use.end_byte] = f"{name} * {self._cast(use)}blockDim.x"

    def _cast(self, node: Node) -> str:
        """`(int)` where a sum of signed numbers of 32 bits would become unsigned by a built-in variable and is not
        stored as a variable of one type right away: `first + k < n`."""
        source, whole = self.source, node
        while whole.parent is not None and _is_sum(whole.parent):
            whole = whole.parent
        declared = whole.parent is not None and whole.parent.type == "init_declarator"
        if declared and whole.parent is not None and whole.parent.parent is not None:
            kind = whole.parent.parent.child_by_field_name("type")
            if kind is not None and source.node_text(kind) != "auto":
                return ""
        words = [source.node_text(n) for n in descendants(whole, "identifier")]
        types = self.indices.variables.types
        counters = {self.chunk.name: self.chunk.type}
        wide = any(_stays(counters.get(w) or types.get(w, "int")) for w in words)
        return "" if wide or any(True for _ in descendants(whole, "field_expression")) else "(int)"

    def require_all_uses(self) -> None:
        """Variables that hold another number now are used for the loop's element alone."""
        block = body(self.indices.kernel)
        chunk = self.chunk
        held = [*self.read, *chunk.places, chunk.start, chunk.node.child_by_field_name("condition")]
        inside = [(n.start_byte, n.end_byte) for n in held if n is not None]
        for name in sorted(self.touched):
            for use in names(block, self.source, name) if block is not None else ():
                parent = use.parent
                declared = parent is not None and parent.child_by_field_name("declarator") == use
                if not declared and not any(start <= use.start_byte < end for start, end in inside):
                    line = self.source.position(use.start_byte)[0]
                    raise NoMatchError(f"`{name}` is used at line {line} for something other than the loop's elements.")


def _is_sum(node: Node) -> bool:
    """Whether it is a sum, a difference or a product, or stands in parentheses."""
    operators = {c.type for c in node.children}
    return node.type == "parenthesized_expression" or (
        node.type == "binary_expression" and bool(operators & {"+", "-", "*"})
    )


def _stays(kind: str) -> bool:
    """Whether a type is unsigned or wider than 32 bits, so that a sum with an unsigned number stays what it is."""
    known = builtin_type(kind)
    return known is not None and ((known.size or 0) > 4 or known.kind == "uint")
