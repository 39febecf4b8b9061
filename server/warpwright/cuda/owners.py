"""Classes of the text that own memory of the device: a constructor allocates, a destructor frees.

Example: `Buffer<float> x(n);` with `explicit Buffer(size_t n) { cudaMalloc(&data, n * sizeof(T)); }` owns n floats, of
which `x.get()` is the pointer and `x.size()` the count. An object that another one is moved or copied into, that a
function returns, or that several constructors could make is none of these: what it holds is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.functions import called_name, function_name
from warpwright.cuda.walks import nodes_below, nodes_in
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import declared_name, descendants, parameters_of, uncast, uncommented
from warpwright.syntax.source import Source

_ALLOCATES = re.compile(r"(?:cuda|hip)Malloc(?:Managed|Async)?")
_FREES = re.compile(r"(?:cuda|hip)Free(?:Async)?")
_SIZE = re.compile(r"size|length|count|numel")
_CLASSES = ("class_specifier", "struct_specifier")


@dataclass(frozen=True, slots=True)
class OwnerClass:
    """`place` is the parameter of the constructor that counts elements, `element` their type, or the template's
    parameter for it; `arities` are the numbers of arguments for which no other constructor can be meant; `pointers` and
    `counts` are what stands behind an object's name: `.get()`, `.size`; `fills`: the constructor may write the memory.
    """

    name: str
    place: int
    element: str
    templated: str
    arities: frozenset[int]
    pointers: frozenset[str]
    counts: frozenset[str]
    fills: bool


@dataclass(frozen=True, slots=True)
class Owner:
    """An object of such a class: its declaration, the elements that it asks for, what these are a product of, and
    their type."""

    kind: OwnerClass
    name: str
    declaration: Node
    elements: Node
    factors: tuple[Node, ...]
    element: str


@lru_cache(maxsize=8)
def owner_classes(source: Source) -> Mapping[str, OwnerClass]:
    """The owning classes of a file, by name."""
    found: dict[str, OwnerClass] = {}
    if b"Malloc" not in source.code:
        return found
    for node in nodes_below(source, source.root, *_CLASSES):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        made = _class(source, node, body, source.node_code(name)) if name is not None and body is not None else None
        if made is not None:
            found[made.name] = made
    return found


def owners_in(source: Source, function: Node) -> Iterator[Owner]:
    """The owning objects that a function declares."""
    kinds = owner_classes(source)
    for declaration in nodes_in(function, "declaration") if kinds else ():
        typed = declaration.child_by_field_name("type")
        kind = kinds.get(_class_name(source, typed))
        if kind is None or typed is None:
            continue
        given = uncommented(next(descendants(typed, "template_argument_list"), None))
        element = source.node_code(given[0]) if given and kind.templated else kind.element
        for declarator in declaration.children_by_field_name("declarator"):
            arguments = _arguments(source, declarator, kind)
            inner = declarator.child_by_field_name("declarator")
            if inner is None or inner.type != "identifier" or len(arguments) not in kind.arities:
                continue
            if not _may_be_object(source, function, arguments[kind.place], kind):
                factors = _factors(arguments[kind.place])
                if factors:
                    yield Owner(kind, source.node_code(inner), declaration, arguments[kind.place], factors, element)


def _arguments(source: Source, declarator: Node, kind: OwnerClass) -> list[Node]:
    """What a declaration hands to a constructor; nothing where it takes the object from elsewhere."""
    value = declarator.child_by_field_name("value")
    if value is None:
        return uncommented(declarator.child_by_field_name("parameters"))
    if value.type == "call_expression" and _class_name(source, value.child_by_field_name("function")) == kind.name:
        value = value.child_by_field_name("arguments")
    return uncommented(value) if value is not None and value.type in ("argument_list", "initializer_list") else []


def _may_be_object(source: Source, function: Node, given: Node, kind: OwnerClass) -> bool:
    """Whether an argument may be an object of the class: what a call gives, and a name that is declared so."""
    given = uncast(source, given)
    if given.type == "call_expression" or next(descendants(given, "abstract_function_declarator"), None) is not None:
        return _SIZE.fullmatch(called_name(given, source)) is None
    name = source.node_code(given)
    for each in nodes_in(function, "declaration", "parameter_declaration"):
        text = _class_name(source, each.child_by_field_name("type"))
        for declarator in each.children_by_field_name("declarator") if text in (kind.name, "auto") else ():
            value = declarator.child_by_field_name("value")
            is_size = value is not None and _SIZE.fullmatch(called_name(value, source)) is not None
            if declared_name(source, declarator) == name and (text == kind.name or not is_size):
                return True
    return False


def _factors(given: Node) -> tuple[Node, ...]:
    """What is multiplied in an argument: `Buffer<float> x(n * m);` reads as a function's head with a pointer."""
    if given.type != "parameter_declaration":
        return (given,)
    first, second = given.child_by_field_name("type"), given.child_by_field_name("declarator")
    if second is not None:
        second = second.child_by_field_name("declarator") if second.type == "pointer_declarator" else None
        return (first, second) if first is not None and second is not None and second.type == "identifier" else ()
    return (first,) if first is not None else ()


def _class(source: Source, node: Node, body: Node, name: str) -> OwnerClass | None:
    methods = [each for each in body.named_children if each.type == "function_definition"]
    calls = [each for method in methods for each in descendants(method, "call_expression")]
    made = [each for each in calls if _ALLOCATES.fullmatch(called_name(each, source))]
    freed = [each for each in calls if _FREES.fullmatch(called_name(each, source))]
    own = [each for each in methods if function_name(source, each) == name]
    maker = next((each for each in own if made and _is_within(made[0], each)), None)
    if len(made) != 1 or not freed or maker is None:
        return None
    asked = _asked(source, made[0])
    if asked is None:
        return None
    member, counted, element = asked
    kept = {
        source.node_code(each.named_children[0]): source.node_code(each.named_children[-1]).strip("(){} ")
        for each in descendants(maker, "field_initializer")
    }
    counted = kept.get(counted, counted)
    names = [declared_name(source, each.child_by_field_name("declarator")) for each in parameters_of(maker)]
    if counted not in names or any(_is_set(source, each, member) for each in methods):
        return None
    around = node.parent
    templated = around is not None and around.type == "template_declaration"
    parameters = source.node_code(around.named_children[0]) if templated and around is not None else ""
    first = re.match(r"<\s*(?:typename|class)\s+(\w+)", parameters)
    is_open = first is not None and first[1] == element
    if templated and not is_open:
        return None
    counts = {each for each, value in kept.items() if value == counted}
    declarator = maker.child_by_field_name("declarator")
    others = [each for each in descendants(body, "function_declarator") if each != declarator]
    arities = _arities(declarator) - {
        number for each in others if _makes(source, each, name) for number in _arities(each)
    }
    return OwnerClass(
        name,
        names.index(counted),
        element,
        element if is_open else "",
        arities,
        frozenset(_spelled(source, methods, {member})),
        frozenset(_spelled(source, methods, counts)),
        any(
            _may_fill(source, each, member, methods)
            for each in calls[calls.index(made[0]) + 1 :]
            if _is_within(each, maker)
        ),
    )


def _makes(source: Source, declarator: Node, name: str) -> bool:
    """Whether a member is a constructor that does not take an object of the class itself."""
    made = declarator.child_by_field_name("declarator")
    given = uncommented(declarator.child_by_field_name("parameters"))
    typed = given[0].child_by_field_name("type") if len(given) == 1 else None
    itself = typed is not None and source.node_code(typed).split("<")[0].strip() == name
    return made is not None and source.node_code(made) == name and not itself


def _arities(declarator: Node | None) -> frozenset[int]:
    """With how many arguments a function can be called: up to 16 where it takes any number."""
    given = uncommented(declarator.child_by_field_name("parameters")) if declarator is not None else []
    least = sum(each.type == "parameter_declaration" for each in given)
    most = 16 if any("variadic" in each.type for each in given) else len(given)
    return frozenset(range(least, most + 1))


def _may_fill(source: Source, call: Node, member: str, methods: list[Node]) -> bool:
    """Whether a call in the constructor is given the memory, or is one of the class's own."""
    called = called_name(call, source)
    given = call.child_by_field_name("arguments")
    named = (
        (source.node_code(each) for each in descendants(given, "identifier", "this", "field_identifier"))
        if given
        else ()
    )
    return called in {function_name(source, each) for each in methods} or any(
        each in (member, "this") for each in named
    )


def _asked(source: Source, call: Node) -> tuple[str, str, str] | None:
    """What `cudaMalloc(&data, n * sizeof(T))` sets, the name that counts, and the type: `data`, `n`, `T`."""
    arguments = uncommented(call.child_by_field_name("arguments"))
    if len(arguments) < 2 or arguments[1].type != "binary_expression":
        return None
    operator = arguments[1].child_by_field_name("operator")
    if operator is None or operator.type != "*":
        return None
    sides = [uncast(source, each) for each in uncommented(arguments[1])]
    sized = next((each for each in sides if each.type == "sizeof_expression"), None)
    counted = next((source.node_code(each) for each in sides if each.type == "identifier"), "")
    if len(sides) != 2 or sized is None or not counted:
        return None
    member = re.sub(r"[^\w]", "", source.node_code(uncast(source, arguments[0])))
    return member, counted, " ".join(source.node_code(sized).split()).removeprefix("sizeof").strip("() ")


def _spelled(source: Source, methods: list[Node], members: set[str]) -> Iterator[str]:
    """What stands behind an object for one of its members: its name, and methods that give it."""
    yield from (f".{member}" for member in members)
    for method in methods:
        body = method.child_by_field_name("body")
        inside = uncommented(body)
        given = uncommented(inside[0]) if len(inside) == 1 and inside[0].type == "return_statement" else []
        name = function_name(source, method)
        if given and name is not None and source.node_code(given[0]) in members:
            yield f".{name}()"


def _is_set(source: Source, method: Node, member: str) -> bool:
    """Whether a method gives a member another value than null."""
    for each in descendants(method, "assignment_expression"):
        left, right = each.child_by_field_name("left"), each.child_by_field_name("right")
        value = source.node_code(right) if right is not None else ""
        if left is not None and source.node_code(left) == member and value not in ("nullptr", "NULL", "0"):
            return True
    return False


def _class_name(source: Source, typed: Node | None) -> str:
    """`Buffer` of `ours::Buffer<float>`."""
    return unqualified(source.node_code(typed)) if typed is not None else ""


def _is_within(inner: Node, outer: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
