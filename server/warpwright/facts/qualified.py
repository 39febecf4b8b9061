"""Names inside types: `typename Vec<T, 4>::Type`, `Traits::WIDTH`, specialisations, and the library's type traits.

A struct's `origin` says which text it was read from and what its template's parameters stand for there; with it a
member is looked up in that text, under those bindings, and then in its base classes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.constants import fold
from warpwright.facts.layout import Member, laid_out
from warpwright.facts.types import (
    BARRIER,
    BUILTIN_TYPES,
    INT,
    UCHAR,
    VOID,
    CType,
    arithmetic_result,
    array_of,
)
from warpwright.facts.unit import TypeText, live_children
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source, Span

if TYPE_CHECKING:
    from warpwright.facts.declarations import DeclarationReader

T = TypeVar("T")
Argument = CType | int | None

MAX_BASES = 8
MAX_NESTING = 40
_NAMESPACES = {"std", "cuda", "thrust", "cub", "detail"}
_LEADING = re.compile(r"^(?:(?:typename|const|volatile|struct|class|template|constexpr|static)\s+|::\s*)+")
_ENUM = "enum_specifier"


@dataclass(frozen=True, slots=True)
class Origin:
    """The text that a struct was read from, and what its template's parameters stand for."""

    text: TypeText
    bindings: tuple[tuple[str, CType | int], ...]


def components(text: str) -> list[str]:
    """The parts of a qualified name, template arguments left on.

    >>> components("typename ns::Vec<a::T, 4>::Type")
    ['ns', 'Vec<a::T, 4>', 'Type']
    """
    text = _LEADING.sub("", text.strip() + " ", count=1).strip()
    parts: list[str] = []
    depth, start = 0, 0
    for i, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if depth == 0 and text.startswith("::", i):
            parts.append(text[start:i].strip().removeprefix("template ").strip())
            start = i + 2
    return [*parts, text[start:].strip().removeprefix("template ").strip()]


def template_texts(text: str) -> list[str]:
    """The arguments in `Name<a, b<c, d>>`.

    >>> template_texts("Name<a, b<c, d>, (1 > 0)>")
    ['a', 'b<c, d>', '(1 > 0)']
    """
    inside = text[text.find("<") + 1 : text.rfind(">")] if "<" in text else ""
    out: list[str] = []
    depth, parentheses, start = 0, 0, 0
    for i, c in enumerate(inside + ","):
        parentheses += (c == "(") - (c == ")")
        if not parentheses:
            depth += (c == "<") - (c == ">")
        if c == "," and depth == 0 and not parentheses:
            out.append(inside[start:i].strip())
            start = i + 1
    return [t for t in out if t]


# -- specialisations --------------------------------------------------------------------------------------------


def chosen_text(reader: DeclarationReader, alias: TypeText, text: str) -> Origin:
    """Which of a template's texts `Name<a, b>` means, and what its parameters stand for."""
    given = template_texts(text)
    arguments: list[Argument] = []
    bindings: dict[str, CType | int] = {}
    for i, (parameter, is_type, default) in enumerate(alias.template):
        spelled = given[i] if i < len(given) else None
        if spelled is not None:
            value: Argument = _argument(reader, spelled, is_type)
        elif default is not None:
            value = _default(reader, Origin(alias, tuple(bindings.items())), default, is_type)
        else:
            value = reader.bindings.get(parameter) if not given else None
        arguments.append(value)
        if value is not None:
            bindings[parameter] = value
    best = Origin(alias, tuple(bindings.items()))
    fewest = len(alias.template) + 1
    for special in reader.unit.specializations.get(alias.name, []):
        bound = _matched(reader, special, arguments)
        if bound is not None and len(bound) < fewest:
            best, fewest = Origin(special, tuple(bound.items())), len(bound)
    return best


def _default(reader: DeclarationReader, known: Origin, spelled: str, is_type: bool) -> Argument:
    return inside(reader, known, lambda: _argument(reader, spelled, is_type))


def _argument(reader: DeclarationReader, spelled: str, is_type: bool) -> Argument:
    return reader.type_of_text(spelled) if is_type else reader.constant_of_text(spelled)


def _matched(reader: DeclarationReader, special: TypeText, arguments: list[Argument]) -> dict[str, CType | int] | None:
    """What the parameters of a (partial) specialisation stand for; None where the arguments do not fit it."""
    wanted = template_texts(special.name)
    if len(wanted) != len(arguments):
        return None
    names = {parameter.name: parameter.is_type for parameter in special.template}
    bound: dict[str, CType | int] = {}
    for spelled, have in zip(wanted, arguments, strict=True):
        if have is None:
            return None
        pointee = spelled.rstrip("* ").removeprefix("const ").strip()
        if spelled in names:
            bound[spelled] = have
        elif spelled.endswith("*") and pointee in names:
            if not isinstance(have, CType) or have.kind != "pointer" or have.to is None:
                return None
            bound[pointee] = have.to
        else:
            want = _argument(reader, spelled, isinstance(have, CType))
            if isinstance(have, CType) and isinstance(want, CType):
                if (have.name, have.size, have.kind) != (want.name, want.size, want.kind):
                    return None
            elif want is None or want != have:
                return None
    return bound


# -- members ----------------------------------------------------------------------------------------------------


def inside(reader: DeclarationReader, origin: Origin, action: Callable[[], T]) -> T:
    """Run `action` with names read as in the struct's own text."""
    return reader.elsewhere(origin.text.source, origin.bindings, [*reader.around, origin], action)


def member_type(reader: DeclarationReader, owner: CType, name: str, bases: int = 0) -> CType | None:
    """The type that an alias, a typedef or a struct inside a struct names."""
    origin = owner.origin
    if not isinstance(origin, Origin) or bases > MAX_BASES:
        return None
    node = _declared_type(reader, origin, name.split("<", maxsplit=1)[0].strip())
    if node is not None:
        return inside(reader, origin, lambda: _type_at(reader, origin, node, name))
    for base in base_types(reader, origin):
        found = member_type(reader, base, name, bases + 1)
        if found is not None:
            return found
    return None


def member_value(reader: DeclarationReader, owner: CType, name: str, span: Span, bases: int = 0) -> ir.Expr | None:
    """The value of a static constant or an enumerator of a struct."""
    origin = owner.origin
    if not isinstance(origin, Origin) or bases > MAX_BASES:
        return None
    for field in _members(reader, origin):
        value = _constant_value(origin.text.source, field, name)
        if value is not None:
            return _evaluated(reader, origin, name, value, span)
    for base in base_types(reader, origin):
        found = member_value(reader, base, name, span, bases + 1)
        if found is not None:
            return found
    return None


def _evaluated(
    reader: DeclarationReader, origin: Origin, name: str, value: tuple[Node | None, int], span: Span
) -> ir.Expr | None:
    """A constant's expression; None where it is being evaluated already, as `Log<N / 2>::VALUE` of an unknown N is."""
    node, step = value
    if node is None:
        return ir.Const(span, step, INT)
    key = (origin.text.node.id, origin.bindings, name)
    known = reader.unit.member_constants.get(key)
    if known is not None:
        return replace(known, span=span)
    if key in reader.evaluating or len(reader.evaluating) > MAX_NESTING:
        return None
    reader.evaluating.add(key)
    try:
        found = inside(reader, origin, lambda: reader.expression_at(node, span))
    finally:
        reader.evaluating.discard(key)
    whole = ir.Binary(span, "+", found, ir.Const(span, step, INT)) if step else found
    number = fold(whole)
    if number is not None:
        whole = ir.Const(span, number, INT)
    elif not isinstance(whole, ir.Const):  # kept whole, a constant of constants would grow without end
        whole = ir.Opaque(span, [])
    reader.unit.member_constants[key] = whole
    return whole


def _members(reader: DeclarationReader, origin: Origin) -> Iterator[Node]:
    body = origin.text.node.child_by_field_name("body")
    if body is not None:
        yield from live_children(reader.unit, origin.text.source, body)


def _constant_value(source: Source, field: Node, name: str) -> tuple[Node | None, int] | None:
    """(expression that a constant counts from, None for 0; how much is added), for a field that declares it."""
    if field.type != "field_declaration":
        return None
    declarator = field.child_by_field_name("declarator")
    default = field.child_by_field_name("default_value")
    if declarator is not None and default is not None and declarator.type == "field_identifier":
        head = source.code_text(field.start_byte, declarator.start_byte).split()
        if source.node_code(declarator) == name and "static" in head:
            return default, 0
    kind = field.child_by_field_name("type")
    if kind is None or kind.type != _ENUM:
        return None
    start: Node | None = None
    step = 0
    for item in descendants(kind, "enumerator"):
        value = item.child_by_field_name("value")
        if value is not None:
            start, step = value, 0
        label = item.child_by_field_name("name")
        if label is not None and source.node_code(label) == name:
            return start, step
        step += 1
    return None


def _declared_type(reader: DeclarationReader, origin: Origin, name: str) -> Node | None:
    source = origin.text.source
    for member in _members(reader, origin):
        node = member
        if node.type == "template_declaration":
            node = next((c for c in node.named_children if c.type == "alias_declaration"), node)
        if node.type == "alias_declaration":
            label = node.child_by_field_name("name")
        elif node.type == "type_definition":
            labels = (
                next(descendants(d, "type_identifier", "primitive_type"), None)
                for d in node.children_by_field_name("declarator")
            )
            label = next((n for n in labels if n is not None and source.node_code(n) == name), None)
        elif node.type == "field_declaration":
            inner = node.child_by_field_name("type")
            named = inner is not None and inner.type.endswith("_specifier") and inner.child_by_field_name("body")
            label = inner.child_by_field_name("name") if inner is not None and named else None
            node = inner if inner is not None else node
        else:
            continue
        if label is not None and source.node_code(label) == name:
            return node
    return None


def _type_at(reader: DeclarationReader, origin: Origin, node: Node, name: str) -> CType:
    if node.type == "alias_declaration":
        return reader.type_of(node.child_by_field_name("type"))
    if node.type == "type_definition":
        return reader.defined_type(node, name)
    if node.type == _ENUM:
        return reader.enum_type(node)
    return reader.struct_type(node, Origin(TypeText(name, node, origin.text.source), origin.bindings))


def base_types(reader: DeclarationReader, origin: Origin) -> Iterator[CType]:
    for clause in origin.text.node.named_children:
        if clause.type == "base_class_clause":
            for parent in clause.named_children:
                if parent.type != "access_specifier":
                    text = origin.text.source.node_code(parent)
                    around = [o for o in reader.around if o.text.node != origin.text.node]
                    yield reader.elsewhere(
                        origin.text.source, origin.bindings, around, functools.partial(reader.named_type, text)
                    )


# -- the library's traits ---------------------------------------------------------------------------------------


def library_type(reader: DeclarationReader, parts: list[str]) -> CType | None:
    """`std::conditional_t<c, A, B>`, `typename std::remove_cv<T>::type`, `std::array<T, 4>` and the like."""
    names = [part for part in parts if part not in _NAMESPACES]
    if len(names) == 2 and names[1] == "UnsignedBits" and names[0].startswith("Traits<"):  # cub's
        names = [f"make_unsigned<{names[0][7:]}", "type"]
    if not names or "<" not in names[0] or len(names) > 2 or (len(names) == 2 and names[1] not in ("type", "Type")):
        return None
    name, arguments = names[0].split("<")[0].strip(), template_texts(names[0])
    if len(names) == 1 and name.endswith("_t"):
        name = name[:-2]
    elif len(names) == 1 and name not in ("array", "complex", "barrier"):
        return None
    kinds = [reader.type_of_text(a) for a in arguments[:3]] if name != "aligned_storage" else []
    first = kinds[0] if kinds else None
    match name:
        case "conditional" if len(arguments) == 3:
            value = reader.constant_of_text(arguments[0])
            return None if value is None else kinds[1 if value else 2]
        case (
            "remove_const" | "remove_cv" | "remove_reference" | "remove_cvref" | "decay" | "add_const" | "type_identity"
        ):
            return first
        case "remove_pointer":
            return first.to if first is not None and first.kind == "pointer" else first
        case "make_unsigned" | "make_signed" if first is not None and (first.is_integer or first.kind == "float"):
            word = {1: "char", 2: "short", 4: "int", 8: "long"}.get(first.size or 4, "int")
            return BUILTIN_TYPES[f"unsigned {word}" if name == "make_unsigned" else word]
        case "enable_if":
            return kinds[1] if len(kinds) > 1 else VOID
        case "common_type" if len(kinds) == 2 and kinds[0] is not None and kinds[1] is not None:
            return arithmetic_result(kinds[0], kinds[1])
        case "aligned_storage":
            size = reader.constant_of_text(arguments[0])
            align = reader.constant_of_text(arguments[1]) if len(arguments) > 1 else None
            storage = array_of(UCHAR, size)
            return laid_out("aligned_storage", [Member("bytes", storage)], align=align or 1) if size else None
        case "array" if len(arguments) == 2 and first is not None:
            return array_of(first, reader.constant_of_text(arguments[1]))
        case "barrier" if "cuda" in parts:
            return BARRIER
        case "complex" if first is not None and first.size:
            return BUILTIN_TYPES["double2" if first.size == 8 else "float2"]
    return None


def library_value(reader: DeclarationReader, parts: list[str]) -> int | None:
    """`std::is_same_v<A, B>`, `std::is_same<A, B>::value` and what else is known from two types' names."""
    names = [part for part in parts if part not in _NAMESPACES]
    if not names or "<" not in names[0]:
        return None
    name, arguments = names[0].split("<")[0].strip(), template_texts(names[0])
    asked = name.removesuffix("_v") if len(names) == 1 else name if names[1:] == ["value"] else ""
    kinds = [reader.type_of_text(a) for a in arguments]
    if not kinds or any(k is None or k.size is None or k.assumed for k in kinds):
        return None
    first = kinds[0]
    if asked == "is_same" and len(kinds) == 2:
        return int(kinds[0] == kinds[1])
    if asked == "is_integral" and first is not None:
        return int(first.is_integer)
    if asked == "is_floating_point" and first is not None:
        return int(first.name in ("float", "double"))
    return None
