"""The variables that a pointer of a launch may come from, whatever the order in which host code sets them.

Where `cuda/addresses` ends at a variable that is set in several places, or at a call, two pointers with one origin may
be one piece of memory. A pointer is followed through what its variables are set to, through the arguments of the calls
on the launch's path, and into the program's own functions to what they return: `same(x)` comes from `x` where `float
*same(float *p) { return p; }`. What such a function allocates is new at each call. A function that is not that is read
may return each pointer to numbers that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tree_sitter import Node

from warpwright.cuda.addresses import ALLOCATES, Address, peeled_call
from warpwright.cuda.declared import declarations, declared
from warpwright.cuda.functions import function_name
from warpwright.cuda.paths import LaunchPath, parameter_place
from warpwright.cuda.walks import nodes_below
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source

MOST_NAMES = 64
"""Variables that one pointer is followed through."""
MOST_VALUES = 400
"""That one pointer is followed through."""
MOST_OF_KERNEL = 4_000
"""Of all pointers of a kernel's launches together."""
MOST_DEEP = 6
"""Functions that call one another, into which it is followed."""
_PLAIN = r"\w+(?:(?:\.|->)\w+)*"
_SWAP = re.compile(rf"\b({_PLAIN})\s*=\s*({_PLAIN})\s*;\s*(?:\2)\s*=\s*({_PLAIN})\s*;\s*\3\s*=\s*\1\s*;")
"""`t = a; a = b; b = t;`: two pointers that were apart stay apart."""
_MOVED = re.compile(r"\w\s*[+-]|&\s*[\w.]+\s*\[")
_DEVICE = ("__global__", "__device__")
_NUMBERS = re.compile(
    r"\b(?:void|float|double|int|long|short|char|signed|unsigned|bool|u?int\d+_t|size_t|half|__half2?|bfloat16"
    r"|(?:__)?nv_bfloat16[2]?|(?:float|double|int|uint|char|uchar|short|ushort|long|ulong|longlong)[1-4]|T)\b"
)
"""Types of which device arrays are made."""

Variable = tuple[str, int, str]
"""A file, the start of a function or -1, and a name there; of what a call allocates, the start of the call and ""."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """A function, and how it is entered: the arguments, which stand in `outer`; for a function whose result is followed
    `site` is the call on the launch's path that leads into it, `of` the object that it is a member of, or "", and
    `is_moved` says whether it returns what lies behind."""

    source: Source
    function: Node | None
    arguments: tuple[Node, ...] | None
    outer: _Frame | None
    site: Variable | None = None
    of: str = ""
    is_moved: bool = False
    deep: int = 0


_Value = tuple[_Frame, Node, str]
"""What a variable is set to: where, the node, and a text that says how it is moved."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The variables that a pointer may come from, whether it is moved, and how many values were looked at."""

    variables: frozenset[Variable] = frozenset()
    is_moved: bool = False
    values: int = 0


def origins(path: LaunchPath, address: Address, most: int = MOST_VALUES) -> Origins:
    """What a pointer which ends at an address comes from, as far as `most` values say it."""
    found: set[Variable] = set()
    seen: set[tuple[Variable, Variable | None, tuple[int, ...]]] = set()
    is_moved, values = False, 0
    frame = _frame(path, address)
    if frame is None:
        return Origins()
    if address.end is not None:
        todo = [*_named(path.sources, frame, address.end)]
    else:
        todo = [(frame, name) for name in _pointers(address.memory[2])]
    while todo and len(seen) < MOST_NAMES and values < most:
        frame, name = todo.pop()
        values += 1
        is_moved = is_moved or frame.is_moved
        base = name.partition(".")[0]
        is_local = frame.function is not None and _is_declared(frame.source, frame.function, base)
        if not is_local and frame.of and frame.outer is not None and not _is_global(path.sources, base):
            todo.append((frame.outer, f"{frame.of}.{name.removeprefix('this.')}"))
            continue
        variable = (frame.source.path, _start(frame.function) if is_local else -1, name)
        key = variable, frame.site, tuple(each.id for each in frame.arguments or ())
        if key in seen:
            continue
        seen.add(key)
        given = [*islice(_values(path.sources, frame, is_local, name), most - values)]
        values += len(given)
        is_moved = is_moved or any(_pointers(text) and _MOVED.search(text) for _, _, text in given)
        place = parameter_place(frame.source, frame.function, base)
        passed = frame.arguments[place : place + 1] if place is not None and frame.arguments is not None else ()
        given += [(frame.outer, each, frame.outer.source.node_code(each)) for each in passed if frame.outer is not None]
        field = name.partition(".")[2]
        further = [
            each
            for where, node, _ in given
            for each in (field and _constructed(path.sources, where, node, field)) or _named(path.sources, where, node)
            if each != (frame, name)
        ]
        todo += further
        if not further:
            is_new = frame.site is not None and is_local and not _is_static(frame.source, frame.function, base)
            found.add(frame.site if is_new and frame.site is not None else variable)
    return Origins(frozenset(found), is_moved, values)


def _frame(path: LaunchPath, address: Address) -> _Frame | None:
    """The function in which an address ends, with those that lead to it."""
    frame: _Frame | None = None
    found: _Frame | None = None
    for depth in range(len(path.calls), -1, -1):
        source, function = path.scope(depth)
        given = tuple(path.calls[depth].arguments) if depth < len(path.calls) else None
        frame = _Frame(source, function, given, frame)
        if _start(function) == address.memory[1] and source.path == address.memory[0]:
            found = frame
    return found


def _named(sources: Sequence[Source], frame: _Frame, node: Node) -> Iterator[tuple[_Frame, str]]:
    """The variables that a pointer's value names, each with the function that it stands in."""
    for each in _alternatives(node):
        inner = peeled_call(frame.source, each) if each.type == "call_expression" else None
        if inner is not None:
            yield from _named(sources, frame, inner)
        elif each.type == "call_expression":
            yield from _returned(sources, frame, each)
        else:
            yield from ((frame, name) for name in _pointers(frame.source.node_code(each)))


def _alternatives(node: Node) -> Iterator[Node]:
    """What a value may be: both sides of `s ? x : y`, without casts and parentheses."""
    inner: Sequence[Node | None] = ()
    match node.type:
        case "parenthesized_expression" | "initializer_list":
            inner = uncommented(node)
        case "cast_expression" | "compound_literal_expression":
            inner = [node.child_by_field_name("value")]
        case "conditional_expression":
            inner = [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
    if not inner:
        yield node
    for each in inner:
        yield from _alternatives(each) if each is not None else ()


def _returned(sources: Sequence[Source], frame: _Frame, call: Node) -> Iterator[tuple[_Frame, str]]:
    """What a call may return: of a function found what it says, of another what it is given."""
    called = call.child_by_field_name("function")
    given = tuple(uncommented(call.child_by_field_name("arguments")))
    text = frame.source.node_code(called) if called is not None else ""
    member = re.match(rf"({_PLAIN})\s*(?:\.|->)\s*\w+(?:\s*<.*>)?$", text, re.DOTALL)
    name = unqualified(re.sub(r".*(?:\.|->)\s*", "", text, flags=re.DOTALL))
    site = frame.site or (frame.source.path, call.start_byte, "")
    functions = [*_functions(sources, name, len(given))]
    of = re.sub(r"\s", "", member[1]).replace("->", ".") if member else ""
    for source, function in functions if frame.deep < MOST_DEEP else ():
        for node in nodes_below(source, function, "return_statement"):
            for value in uncommented(node):
                text = source.node_code(value)
                is_moved = bool(_pointers(text)) and _MOVED.search(text) is not None
                inner = _Frame(source, function, given, frame, site, of, is_moved, frame.deep + 1)
                yield from _named(sources, inner, value)
    if not functions and member is None:
        if not ALLOCATES.search(name):  # it may give the same again
            yield frame, frame.source.node_code(call).replace(".", " ")
        yield from _given(frame, given)


def _given(frame: _Frame, arguments: Sequence[Node]) -> Iterator[tuple[_Frame, str]]:
    """The pointers to numbers among arguments."""
    for node in arguments:
        for each in _alternatives(node):
            names = _pointers(frame.source.node_code(each)) if each.type != "call_expression" else []
            yield from ((frame, name) for name in names if _leads_to_numbers(frame, name))


def _constructed(sources: Sequence[Source], frame: _Frame, value: Node, member: str) -> list[tuple[_Frame, str]]:
    """The member of an object as its constructor sets it, where a value is what an object is made of; where that is not
    found, the pointers that are handed to it. Nothing for other values."""
    kind, listed = _made(value)
    if kind is None or listed is None or frame.deep == MOST_DEEP:
        return []
    name = unqualified(re.sub(r"<.*|[*&\s]", "", frame.source.node_code(kind), flags=re.DOTALL))
    given = tuple(uncommented(listed))
    functions = [*_functions(sources, name, len(given))]
    if not functions:
        return [*_given(frame, given)] if value.type != "call_expression" else []
    is_type = any(node.child_by_field_name("type") is None for _, node in functions)
    return [
        (_Frame(source, node, given, frame, frame.site, deep=frame.deep + 1), member)
        for source, node in functions
        if is_type
    ]


def _made(value: Node) -> tuple[Node | None, Node | None]:
    """The type and the arguments of `B(x)`, `new B(x)`, and of the values in `B b(x);` and `B b{x};`."""
    around = value.parent.parent if value.parent is not None else None
    match value.type:
        case "call_expression":
            return value.child_by_field_name("function"), value.child_by_field_name("arguments")
        case "new_expression":
            return value.child_by_field_name("type"), value.child_by_field_name("arguments")
        case "compound_literal_expression":
            return value.child_by_field_name("type"), value.child_by_field_name("value")
        case "parameter_list" | "argument_list" | "initializer_list" if around is not None:
            return around.child_by_field_name("type"), value
    return None, None


def _functions(sources: Sequence[Source], name: str, given: int) -> Iterator[tuple[Source, Node]]:
    """The host functions of a name that take so many arguments."""
    for source in sources:
        for function in _by_name(source).get(name, ()):
            parameters = parameters_of(function)
            least = sum(parameter.type == "parameter_declaration" for parameter in parameters)
            if least <= given <= len(parameters):
                yield source, function


@lru_cache(maxsize=24)
def _by_name(source: Source) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes_below(source, source.root, "function_definition"):
        if not any(child.type in _DEVICE for child in node.children) and (name := function_name(source, node)):
            found.setdefault(name, []).append(node)
    return found


def _leads_to_numbers(frame: _Frame, name: str) -> bool:
    """Whether a local variable is declared as a pointer to what device arrays are made of."""
    if frame.function is None:
        return False
    return any(
        each.declarator.type in ("pointer_declarator", "init_declarator")
        and "*" in frame.source.node_code(each.declarator).partition("=")[0]
        and each.type is not None
        and _NUMBERS.search(frame.source.node_code(each.type)) is not None
        for each in declared(frame.source, frame.function, name)
    )


def _start(function: Node | None) -> int:
    return function.start_byte if function is not None else -1


def _pointers(text: str) -> list[str]:
    """The variables that a pointer's value names: none of those that only say how far it moves, or that a function is
    given.

    >>> _pointers("k % 2 ? a : s->b"), _pointers("p + n"), _pointers("(float *)malloc(n)"), _pointers("v[i]")
    (['a', 's.b'], ['p'], [], ['v'])
    """
    text = re.sub(r"\s*->\s*", ".", text)
    text = re.sub(r"\[[^\]]*\]|(?:reinterpret|static|const)_cast\s*<[^>]*>|\(\s*(?:const\s+)?\w+\s*\*+\s*\)", "", text)
    if "?" in text:
        return [each for part in text.partition("?")[2].split(":") for each in _pointers(part)]
    if listed := re.fullmatch(r"[\w:<>\s*]*\{(.*)\}", text, re.DOTALL):
        return [each for part in listed[1].split(",") for each in _pointers(part)]
    first = re.match(r"[\s(&*]*([A-Za-z_][\w.]*)\s*(::|[(<]|)", text) if ")." not in text else None
    return [first[1]] if first and not first[2] and first[1] not in ("nullptr", "NULL", "new") else []


def _is_declared(source: Source, function: Node, name: str) -> bool:
    return any(True for _ in declared(source, function, name))


def _is_static(source: Source, function: Node | None, name: str) -> bool:
    """Whether a local variable keeps its value from call to call."""
    return function is not None and any(
        source.node_code(child) == "static"
        for each in declared(source, function, name)
        for child in each.node.children
        if child.type == "storage_class_specifier"
    )


def _is_global(sources: Sequence[Source], name: str) -> bool:
    return any(
        each.node.type == "declaration" and enclosing(each.node, "function_definition") is None
        for source in sources
        for each in declarations(source).get(name, ())
    )


def _values(sources: Sequence[Source], frame: _Frame, is_local: bool, name: str) -> Iterator[_Value]:
    """What a variable is set to in a function, and where it is none of the function's own, anywhere; each with the
    function that it stands in. A member is set with its struct, and wherever host code sets a member of its name."""
    base, _, field = name.partition(".")
    member = field or (name if not is_local else "")
    for each in (frame.source,) if not member else sources:
        settings = _settings(each)
        for one in {id(s): s for key in {_last(name), base, _last(member)} for s in settings.get(key, ())}.values():
            is_here = each == frame.source and _stands_in(one, frame.function)
            is_it = one.left == name or (one.left == base and (is_here or not is_local))
            if not is_it and not (member and one.left.endswith(f".{member}")) and not (field and one.left == member):
                continue
            if is_here or member or frame.function is None:
                yield frame if is_here else _Frame(each, one.function, None, None), one.value, one.text


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """A place where host code gives a variable a value: `text` says how that is moved."""

    left: str
    value: Node
    text: str
    function: Node | None


@lru_cache(maxsize=24)
def _settings(source: Source) -> dict[str, list[_Setting]]:
    """All of a file by the last name in what is set, without swaps; found once."""
    found: dict[str, list[_Setting]] = {}
    swapped = [each.span() for each in _SWAP.finditer(source.node_code(source.root))]
    start = source.root.start_byte
    kinds = ("init_declarator", "assignment_expression", "field_initializer", "function_declarator")
    for node in nodes_below(source, source.root, *kinds):
        children = node.named_children
        if node.type == "function_declarator" and (node.parent is None or node.parent.type != "declaration"):
            continue
        label = node.child_by_field_name("declarator") or node.child_by_field_name("left") or children[0]
        value = node.child_by_field_name("value") or node.child_by_field_name("right") or children[-1]
        at = node.start_byte - start
        if node.type == "assignment_expression" and any(first <= at < end for first, end in swapped):
            continue
        around = enclosing(node, "function_definition")
        if around is not None and any(child.type in _DEVICE for child in around.children):
            continue
        left = re.sub(r"\s|\[[^\]]*\]|^[*&\s]+", "", source.node_code(label)).replace("->", ".")
        operator = node.child_by_field_name("operator")
        text = source.node_code(value)
        text = f"{left} + {text}" if operator is not None and source.node_code(operator) != "=" else text
        found.setdefault(_last(left), []).append(_Setting(left, value, text, around))
    return found


def _stands_in(setting: _Setting, function: Node | None) -> bool:
    """Whether it is in a function or lambda, or in none where that is None."""
    if function is None:
        return setting.function is None
    return function.start_byte <= setting.value.start_byte < function.end_byte


def _last(name: str) -> str:
    return name.rpartition(".")[2]
