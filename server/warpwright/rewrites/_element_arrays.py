"""Arrays of numbers of which each element's work uses its own element, as they can be moved several at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import AccessKind, Kernel, Parameter, Space
from warpwright.rewrites._arrays import takes_values
from warpwright.rewrites._code import body, names, squeezed
from warpwright.rewrites._elementwise import Elements, declared_in
from warpwright.rewrites._locals import is_template_type
from warpwright.rewrites._templates import is_launched_alike, launched_beside_structures
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

ELEMENT_SIZES = {
    "float": 4, "int": 4, "unsigned": 4, "unsigned int": 4, "int32_t": 4, "uint32_t": 4, "signed int": 4,
    "double": 8, "long long": 8, "unsigned long long": 8, "long long int": 8, "unsigned long long int": 8,
    "int64_t": 8, "uint64_t": 8,
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2, "short": 2, "unsigned short": 2, "int16_t": 2,
    "uint16_t": 2, "char": 1, "signed char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1,
}  # fmt: skip
"""Bytes of the numbers that can be moved as parts of a vector."""
_VECTORS = {("float", 16): "float4", ("float", 8): "float2", ("int", 16): "int4", ("int", 8): "int2",
            ("double", 16): "double2"}  # fmt: skip
_NUMBERS = (1, 2, 4, 8)
_BY_BYTES = {16: "uint4", 8: "uint2", 4: "unsigned int", 2: "unsigned short"}
_CONDITIONS = ("if_statement", "switch_statement", "conditional_expression", *LOOPS)


@dataclass(frozen=True, slots=True)
class ElementArray:
    """A parameter whose every use is `a[i]`. `uses` are these; `is_loaded` and `is_stored` what they do, with `by_data`
    where data decide whether it is done at all. `bytes` is the most that an element has where its type is no name of
    ELEMENT_SIZES, but a template's or one that the user gave."""

    name: str
    type: str
    uses: tuple[Node, ...]
    is_loaded: bool
    is_stored: bool
    bytes: int = 0
    by_data: bool = False

    @property
    def size(self) -> int:
        return ELEMENT_SIZES.get(self.type, self.bytes)

    @property
    def is_named(self) -> bool:
        """Whether the type has vectors of CUDA's own; else they are a structure of its elements."""
        return self.type in ELEMENT_SIZES

    def vector(self, factor: int) -> str:
        return _VECTORS.get((self.type, self.size * factor)) or _BY_BYTES[self.size * factor]


def element_array(kernel: Kernel, elements: Elements, parameter: Parameter) -> ElementArray | str:
    """The array of a parameter; else empty where it may stay as it is, or why its uses keep all from being moved."""
    source, name, block = kernel.source, parameter.name, body(kernel)
    uses = list(names(block, source, name)) if block is not None else []
    if not uses:
        return ""
    element_type = _element_type(parameter)
    reason = ""
    loads, stores, certain_loads, certain_stores = 0, 0, 0, 0
    found: list[Node] = []
    for use in uses:
        element = use.parent
        line = source.position(use.start_byte)[0]
        indices = element.child_by_field_name("indices") if element is not None else None
        plain = (
            element is not None
            and element.type == "subscript_expression"
            and element.child_by_field_name("argument") == use
            and indices is not None
            and squeezed(source.node_code(indices)[1:-1]) == elements.index
            and elements.start <= use.start_byte < elements.end
        )
        if element is None or not plain or not is_value(element, source):
            reason = reason or f"`{name}` is used at line {line} other than as one element at [{elements.index}]."
            continue
        found.append(element)
        certain = is_certain(element, elements.start, elements.end, elements.guard)
        read, written = done(element, source)
        loads, stores = loads + read, stores + written
        certain_loads, certain_stores = certain_loads + (read and certain), certain_stores + (written and certain)
    if "volatile" in parameter.type:
        return f"`{name}` is volatile."
    if reason:
        return "" if parameter.is_const and not found else reason
    size = _size(kernel, parameter, element_type)
    if size is None:
        return "" if not stores else f"Nothing to gain: the elements of `{name}` are {element_type}, moved as they are."
    stored = certain_stores or (stores and any(_stores_always(source, s, found) for s in elements.work))
    by_data = (stores and not stored) or (not stores and not certain_loads)
    unread = stores and not stored and not loads
    if by_data and (unread or not all(_by_data(element, elements, source) for element in found)):
        if stores:
            return f"`{name}` is stored conditionally, and a vector store would not be."
        return f"`{name}` is read conditionally, so that it would stay one by one."
    kept = bool(stores and not stored)
    return ElementArray(name, element_type, tuple(found), loads > 0 or kept, stores > 0, size, bool(by_data))


def _size(kernel: Kernel, parameter: Parameter, element_type: str) -> int | None:
    """The most bytes that an element has: of numbers and of small structures that are moved whole, such as `half2`.
    None for other types."""
    if element_type in ELEMENT_SIZES:
        return ELEMENT_SIZES[element_type]
    of_it = [a for a in kernel.accesses if a.array == parameter.name and a.space is Space.GLOBAL]
    unknown = is_template_type(kernel, element_type) and not is_launched_alike(kernel, element_type)
    if unknown and launched_beside_structures(kernel):
        return None
    whole = all(
        a.bytes == a.value_bytes == (a.structure.bytes if a.structure is not None else a.bytes)
        and a.bytes in _NUMBERS
        and a.kind is not AccessKind.ATOMIC
        for a in of_it
    )
    numbers = {*ELEMENT_SIZES, "bool", "long", "unsigned long", element_type}
    known = all(a.structure is not None or a.type in numbers for a in of_it)
    words = re.fullmatch(r"\w+(?: \w+)?", element_type) is not None
    return max(a.bytes for a in of_it) if of_it and whole and known and words else None


def _stores_always(source: Source, statement: Node, uses: list[Node]) -> bool:
    """Whether a statement stores in one of the elements whichever side of its `if` is taken."""
    match statement.type:
        case "compound_statement" | "else_clause":
            return any(_stores_always(source, inner, uses) for inner in uncommented(statement))
        case "if_statement":
            sides = [statement.child_by_field_name(field) for field in ("consequence", "alternative")]
            return all(side is not None and _stores_always(source, side, uses) for side in sides)
        case "expression_statement":
            value = next(iter(uncommented(statement)), None)
            target = value.child_by_field_name("left") if value is not None else None
            return value is not None and value.type == "assignment_expression" and target in uses
    return False


def _by_data(element: Node, elements: Elements, source: Source) -> bool:
    """Whether all that decides if the work comes to an element is data of the element: values from memory, compared
    with what is the same for all. A size or a flag of the launch may tell that the array is not there, or is shorter.
    """
    read, more = set[str](), True
    while more:
        more = False
        for statement in elements.work:
            for declarator in descendants(statement, "init_declarator"):
                name, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
                if name is None or value is None or source.node_text(name) in read:
                    continue
                if _holds_data(source, value, read, elements.index):
                    read.add(source.node_text(name))
                    more = True
    own = {declared for statement in elements.work for declared in declared_in(source, statement)}
    for condition in _conditions(element, elements):
        if condition is None or not _holds_data(source, condition, read, elements.index):
            return False
        if any(source.node_text(n) in own - read for n in descendants(condition, "identifier")):
            return False
    return True


def _holds_data(source: Source, node: Node, read: set[str], index: str) -> bool:
    """Whether an expression is made of elements or variables that hold data, and the index stands in brackets alone."""
    if any(
        source.node_text(n) == index and enclosing(n, "subscript_argument_list") is None
        for n in descendants(node, "identifier")
    ):
        return False
    data = any(source.node_text(n) in read for n in descendants(node, "identifier"))
    return data or any(True for _ in descendants(node, "subscript_expression"))


def _conditions(element: Node, elements: Elements) -> Iterator[Node | None]:
    """What decides whether the work comes to an element; None for a loop or a `switch`."""
    child = element
    for parent in ancestors(element):
        if parent.start_byte < elements.start or parent.end_byte > elements.end or parent == elements.guard:
            return
        logical = parent.type == "binary_expression" and any(c.type in ("&&", "||") for c in parent.children)
        first = parent.child_by_field_name("left" if logical else "condition")
        if (logical or parent.type in _CONDITIONS) and child != first:
            yield first if logical or parent.type in ("if_statement", "conditional_expression") else None
        child = parent


def row_array(kernel: Kernel, elements: Elements, parameter: Parameter, index: str) -> ElementArray | str:
    """The uses of a parameter at one index, written without white space, in the work on an element; or why they cannot
    be moved together."""
    source, name, element_type = kernel.source, parameter.name, _element_type(parameter)
    if "volatile" in parameter.type:
        return f"`{name}` is volatile."
    if element_type not in ELEMENT_SIZES:
        return f"Nothing to gain: the elements of `{name}` are {element_type}, moved as they are."
    found: list[Node] = []
    loads, stores, certain_loads, certain_stores = 0, 0, 0, 0
    for use in (u for s in elements.work for u in names(s, source, name)):
        element = use.parent
        indices = element.child_by_field_name("indices") if element is not None else None
        if element is None or indices is None or squeezed(source.node_code(indices)[1:-1]) != index:
            continue
        if not is_value(element, source):
            return f"`{name}` is used at line {source.position(use.start_byte)[0]} other than as a value."
        found.append(element)
        certain = is_certain(element, elements.start, elements.end, elements.guard)
        read, written = done(element, source)
        loads, stores = loads + read, stores + written
        certain_loads, certain_stores = certain_loads + (read and certain), certain_stores + (written and certain)
    if stores and not certain_stores:
        return f"`{name}` is stored conditionally, and a vector store would not be."
    if not found or (not stores and not certain_loads):
        return f"`{name}` is read conditionally, so that it would stay one by one."
    return ElementArray(name, element_type, tuple(found), loads > 0, stores > 0)


def _element_type(parameter: Parameter) -> str:
    words = parameter.type.replace("*", " ").split()
    skipped = ("const", "__restrict__", "__restrict", "restrict", "volatile", parameter.name)
    return " ".join(word.removeprefix("std::") for word in words if word not in skipped)


def is_value(element: Node, source: Source) -> bool:
    """Whether an element is read or assigned as a value: no address, no reference, no call that could take one."""
    parent = element.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is None or parent.type in ("field_expression", "subscript_expression", "sizeof_expression"):
        return False
    if parent.type == "pointer_expression" and source.node_code(parent).startswith("&"):
        return False
    if parent.type == "init_declarator":
        target = parent.child_by_field_name("declarator")
        return target is not None and target.type != "reference_declarator"
    if parent.type == "argument_list":
        return parent.parent is not None and takes_values(parent.parent, source)
    return True


def is_certain(element: Node, start: int, end: int, guard: Node | None = None) -> bool:
    """Whether all that runs the bytes [start, end) comes there: under no condition but the guard's."""
    child = element
    for parent in ancestors(element):
        if parent.start_byte < start or parent.end_byte > end or parent == guard:
            return True
        logical = parent.type == "binary_expression" and any(c.type in ("&&", "||") for c in parent.children)
        first = parent.child_by_field_name("left" if logical else "condition")
        if (logical or parent.type in _CONDITIONS) and child != first:
            return False
        child = parent
    return True


def done(element: Node, source: Source) -> tuple[bool, bool]:
    """Whether an element is read, and whether it is written."""
    parent = element.parent
    if parent is not None and parent.type == "update_expression":
        return True, True
    if parent is not None and parent.type == "assignment_expression" and parent.child_by_field_name("left") == element:
        operator = parent.child_by_field_name("operator")
        plain = operator is not None and source.node_text(operator) == "="
        value = parent.parent is not None and parent.parent.type != "expression_statement"
        return not plain or value, True
    return True, False
