"""Pointers of the host function that launches: where they get their memory, and where they are used."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Kernel
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import (
    LOOPS,
    enclosing,
    launch_configuration,
    node_at,
    parent_of,
    uncast,
    uncommented,
    walk,
)
from warpwright.syntax.source import Source

_ALLOCATES = re.compile(r"(?:cuda|hip)Malloc(?:Managed|Async|Host)?|(?:cuda|hip)HostAlloc")
_FREES = re.compile(r"(?:cuda|hip)Free(?:Async)?")
_REGISTERS = re.compile(r"(?:cuda|hip)HostRegister")
_MOVES = re.compile(r"(?:cuda|hip)Mem(?:cpy|set)(?:Async)?")
_ROWS = re.compile(r"(?:cuda|hip)Mem(?:cpy|set)2D(?:Async)?")
_READ = (
    "call_expression", "declaration", "parameter_declaration", "assignment_expression", "update_expression",
    "pointer_expression", "return_statement",
)  # fmt: skip
_MEMBER = re.compile(r"\w+\.\w+(?:\(\))?")
_SYMBOLS = re.compile(r"(?:cuda|hip)MemcpyToSymbol(?:Async)?")


@dataclass(frozen=True, slots=True)
class Call:
    """A call, with its arguments without casts."""

    node: Node
    arguments: Sequence[Node]


def _lists() -> defaultdict[str, list[Call]]:
    return defaultdict(list)


@dataclass(frozen=True, slots=True)
class HostFunction:
    """What a host function does with its pointers, by their names; read once, however many launches stand in it."""

    source: Source
    node: Node
    declared: Mapping[str, list[tuple[Node, Node]]] = field(default_factory=lambda: defaultdict(list))
    """The types and declarators of its variables."""
    allocations: Mapping[str, list[Call]] = field(default_factory=_lists)
    frees: Mapping[str, list[Call]] = field(default_factory=_lists)
    moves: Mapping[str, list[Call]] = field(default_factory=_lists)
    """Copies from and to a pointer, and fills."""
    all_moves: list[Call] = field(default_factory=lambda: [])
    row_moves: Mapping[str, list[Call]] = field(default_factory=_lists)
    """Those of rows that lie a pitch apart."""
    symbol_copies: Mapping[str, list[Call]] = field(default_factory=_lists)
    """Copies to variables of the device, by their names."""
    uses: Mapping[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    """Where a launch or a copy is handed it, in the order of the text."""
    settings: Mapping[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Where something may give it another value, in the order of the text: an assignment, or its address."""
    assigned: Mapping[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    """The values that are assigned to a variable or a member, by its text."""
    returns: Mapping[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Where a block, by its start, is left."""
    registered: list[Call] = field(default_factory=lambda: [])
    """Memory of the host that the device may use."""

    def is_set(self, name: str, start: int, end: int) -> bool:
        return _first(self.settings.get(name, ()), start) < end

    def used_behind(self, freed: Call, name: str) -> Node | None:
        """The first use of a pointer in the statements behind the call that frees it, in the same block."""
        statement = _statement(freed.node)
        block = parent_of(statement) if statement is not None else None
        if statement is None or block is None or statement.type != "expression_statement":  # in a condition or a macro
            return None
        uses = self.uses.get(name, ())
        at = bisect_left(uses, statement.end_byte, key=lambda node: node.start_byte)
        if at == len(uses) or uses[at].start_byte >= _first(self.returns.get(block.start_byte, ()), statement.end_byte):
            return None
        use = uses[at]
        around: Node | None = use
        while around is not None and around.end_byte < block.end_byte and parent_of(around) != block:
            around = parent_of(around)
        if around is None or around.end_byte >= block.end_byte:
            return None
        return None if self.is_set(name, statement.end_byte, around.end_byte) else use

    def used_again(self, freed: Call, name: str) -> Node | None:
        """The first use of a pointer in the loop around the call that frees it, of one that is set outside of it and
        goes round again."""
        statement = _statement(freed.node)
        block = parent_of(statement) if statement is not None else None
        loop = parent_of(block) if block is not None else None
        if statement is None or block is None or loop is None or statement.type != "expression_statement":
            return None
        if loop.type not in LOOPS or self.is_set(name, loop.start_byte, loop.end_byte):
            return None
        leaves = (n for n in walk(block) if n.type in ("break_statement", "return_statement", "goto_statement"))
        if any(leave.start_byte > statement.start_byte for leave in leaves):
            return None
        declared = self.declared.get(name, ())
        if len(declared) != 1 or loop.start_byte <= declared[0][1].start_byte < loop.end_byte:
            return None
        uses = (use for use in self.uses.get(name, ()) if block.start_byte <= use.start_byte < statement.start_byte)
        return next(uses, None)


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """A launch of the kernel and the host function that it stands in."""

    arguments: Sequence[Node]
    function: HostFunction

    @property
    def names(self) -> set[str]:
        """The variables that it is handed."""
        source = self.function.source
        return {source.node_code(node) for node in self.arguments if node.type == "identifier"}


def launches_of(kernel: Kernel) -> Iterator[HostLaunch]:
    """The launches that stand in functions of the text."""
    for launch in kernel.launches:
        if launch.span is None:
            continue
        source = launch.span.source
        node = node_at(source.root, launch.span.start, launch.span.end)
        while node is not None and not (node.type == "call_expression" and launch_configuration(node) is not None):
            node = parent_of(node)
        function = enclosing(node, "function_definition") if node is not None else None
        if node is not None and function is not None:
            yield HostLaunch(_arguments(source, node), _read(source, function))


def pointers_of(kernel: Kernel) -> Iterator[tuple[HostFunction, str]]:
    """Each variable that a launch is handed, once for each function."""
    seen: set[tuple[int, str]] = set()
    for launch in launches_of(kernel):
        for name in sorted(launch.names):
            if (id(launch.function), name) not in seen:
                seen.add((id(launch.function), name))
                yield launch.function, name


@lru_cache(maxsize=64)
def _read(source: Source, function: Node) -> HostFunction:
    read = HostFunction(source, function)
    for node in nodes_below(source, function, *_READ):
        if node.type == "call_expression":
            _read_call(read, node)
        elif node.type in ("declaration", "parameter_declaration"):
            _read_declaration(read, node)
        elif node.type in ("assignment_expression", "update_expression"):
            left = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if left is not None:
                read.settings[source.node_code(left)].append(node.start_byte)
                value = node.child_by_field_name("right")
                if value is not None:
                    read.assigned[source.node_code(left)].append(value)
        elif node.type == "pointer_expression":
            name = _addressed(source, node)
            if name:
                read.settings[name].append(node.start_byte)
        elif node.type == "return_statement":
            block = parent_of(node)
            if block is not None and block.type == "compound_statement":
                read.returns[block.start_byte].append(node.start_byte)
    return read


def _read_call(read: HostFunction, node: Node) -> None:
    source, called = read.source, node.child_by_field_name("function")
    name = unqualified(source.node_code(called)) if called is not None else ""
    call = Call(node, _arguments(source, node))
    names = [_named(source, each) for each in call.arguments]
    if _ALLOCATES.fullmatch(name) and call.arguments:
        read.allocations[_addressed(source, call.arguments[0])].append(call)
    elif _FREES.fullmatch(name) and names:
        read.frees[names[0]].append(call)
    elif _REGISTERS.fullmatch(name):
        read.registered.append(call)
    elif _SYMBOLS.fullmatch(name) and names:
        read.symbol_copies[names[0]].append(call)
    elif _ROWS.fullmatch(name):
        for each in sorted(set(names[:3]) - {""}):
            read.row_moves[each].append(call)
    moves = _MOVES.fullmatch(name) is not None
    if moves:
        read.all_moves.append(call)
    for each in sorted(set(names[:2]) if moves else ()):
        read.moves[each].append(call)
    if moves or launch_configuration(node) is not None:
        for each, argument in zip(names, call.arguments, strict=True):
            read.uses[each].append(argument)


def _read_declaration(read: HostFunction, node: Node) -> None:
    kind = node.child_by_field_name("type")
    for declarator in node.children_by_field_name("declarator"):
        inner: Node | None = declarator
        while inner is not None and inner.type != "identifier":
            inner = inner.child_by_field_name("declarator")
        if kind is not None and inner is not None:
            read.declared[read.source.node_code(inner)].append((kind, declarator))


def _named(source: Source, argument: Node) -> str:
    """A variable, or the member of one that is asked for, as in `x.get()`; empty for other expressions."""
    if argument.type == "identifier":
        return source.node_code(argument)
    text = "".join(source.node_code(argument).split())
    return text if _MEMBER.fullmatch(text) else ""


def _arguments(source: Source, call: Node) -> list[Node]:
    return [uncast(source, node) for node in uncommented(call.child_by_field_name("arguments"))]


def _addressed(source: Source, node: Node) -> str:
    """The variable of `&name`."""
    text = source.node_code(node).replace(" ", "") if node.type == "pointer_expression" else ""
    return text[1:] if text.startswith("&") else ""


def _statement(node: Node) -> Node | None:
    """The statement of a block that a node stands in."""
    around: Node | None = node
    while around is not None:
        parent = parent_of(around)
        if parent is not None and parent.type == "compound_statement":
            return around
        around = parent
    return None


def _first(places: Sequence[int], start: int) -> float:
    """The first of ascending places that is not before a start."""
    at = bisect_right(places, start - 1)
    return places[at] if at < len(places) else float("inf")
