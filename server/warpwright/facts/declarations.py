"""Names, types and declarators of a function's text: the ground that expressions and statements stand on."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.constants import fold
from warpwright.facts.layout import Member, alignment_text, as_base, asked_alignment, laid_out, packing
from warpwright.facts.qualified import Origin, chosen_text, components, inside, library_type, member_type
from warpwright.facts.steps import FRAGMENT, FRAGMENT_BYTES, NAME_BYTES
from warpwright.facts.types import (
    BUILTIN_TYPES,
    INT,
    UNKNOWN_TYPE,
    CType,
    array_of,
    builtin_type,
    pointer_to,
)
from warpwright.facts.unit import TypeText, Unit, live_children
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source, Span

Bindings = Mapping[str, CType | int]
"""What a template's parameters stand for."""


T = TypeVar("T")
_FUNCTIONS = ("field_declaration", "function_definition", "declaration")
MAX_EXPANSION = 24
"""How deep macros and constants may stand in one another."""


@dataclass(slots=True)
class Scope:
    names: dict[str, int | CType | Callable[[Span], ir.Expr]]


class DeclarationReader(ABC):
    """Reads types and declarators. `bindings` gives the function's template parameters, where they are known."""

    def __init__(self, unit: Unit, source: Source, bindings: Bindings | None = None) -> None:
        self.unit = unit
        self.source = source
        self.scopes: list[Scope] = [Scope({})]
        self.slot_types: list[CType] = []
        self.at: Span | None = None  # the outermost macro use that is being expanded
        self.depth = 0
        self.this: CType | None = None  # the struct whose member function is read
        self.around: list[Origin] = []  # the structs inside whose text names are read, innermost last
        self.evaluating: set[Hashable] = set()  # the members of structs whose values are being read
        self.expanding: set[str] = set()
        self.resolving: set[str] = set()  # types whose members are being read: a list node points to its like
        self.cycles = 0  # how often a type that is being read was met
        self.incomplete: list[str] = []
        self.bindings: dict[str, CType | int] = dict(bindings or {})

    @abstractmethod
    def expression(self, node: Node | None) -> ir.Expr:
        """An expression of the present text in the form that is interpreted."""

    def declare(self, name: str, kind: CType) -> int:
        self.slot_types.append(kind)
        slot = len(self.slot_types) - 1
        self.scopes[-1].names[name] = slot
        return slot

    def lookup(self, name: str) -> int | CType | Callable[[Span], ir.Expr] | None:
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        return None

    def span(self, node: Node) -> Span:
        return self.at if self.at is not None else Span(self.source, node.start_byte, node.end_byte)

    def may_expand(self) -> bool:
        """Whether one more macro or constant may be read inside of those that are."""
        return len(self.expanding) <= MAX_EXPANSION

    def fragment(self, text: str, kind: str) -> tuple[Source, Node] | None:
        """A piece of text in a little file of its own, and its first node of that kind; None where it does not parse,
        and where no steps are left for it: macros that use one another may double each time."""
        if not self.unit.steps.take(FRAGMENT + len(text) // FRAGMENT_BYTES):
            return None
        return _parse_fragment(text, kind)

    # -- types --------------------------------------------------------------------------------------------------

    def type_of_text(self, text: str) -> CType | None:
        node = self.fragment(f"{text} __warpwright;", "declaration")
        if node is None:
            return None
        source, declaration = node
        return self.within(source, lambda: self._declaration_type(declaration))

    def _declaration_type(self, declaration: Node) -> CType:
        base = self.type_of(declaration.child_by_field_name("type"))
        return self.declared(base, declaration.child_by_field_name("declarator"))[0]

    def type_of(self, node: Node | None) -> CType:
        """The type that a type node names, before any declarator."""
        if node is None:
            return UNKNOWN_TYPE
        if node.type == "type_descriptor":
            base = self.type_of(node.child_by_field_name("type"))
            return self.declared(base, node.child_by_field_name("declarator"))[0]
        if node.type == "placeholder_type_specifier":
            return CType("auto", None)
        if node.type in ("struct_specifier", "class_specifier", "union_specifier"):
            if node.child_by_field_name("body") is not None:
                return self._struct(node, "")
            name = node.child_by_field_name("name")
            return self.named_type(self.source.node_code(name)) if name is not None else UNKNOWN_TYPE
        if node.type == "enum_specifier":
            return self.enum_type(node)
        return self.named_type(self.source.node_code(node))

    def enum_type(self, node: Node) -> CType:
        """The integer type of an enumeration: what stands behind its colon, else int."""
        base = node.child_by_field_name("base")
        return self.type_of(base) if base is not None else INT

    def named_type(self, text: str) -> CType:
        """The type of that name: template parameter, built-in, macro, typedef or struct."""
        text = text.strip()
        bound = self.bindings.get(text)
        if isinstance(bound, CType):
            return bound
        local = self.lookup(text)
        if isinstance(local, CType):
            return local
        known = builtin_type(text)
        if known is not None:
            return known
        if not self.unit.steps.take(1 + len(text) // NAME_BYTES):  # `a::b::c` asks for `a::b` more than once
            return CType(text, None)
        parts = components(text)
        found_member = self._member_type(parts)
        if found_member is not None:
            return found_member
        short = parts[-1].split("<")[0].strip()
        macro = self.unit.macros.get(short)
        if macro is not None and macro.parameters is None and macro.body and self.depth < MAX_EXPANSION:
            self.depth += 1
            found = self.type_of_text(macro.body)
            self.depth -= 1
            return found or UNKNOWN_TYPE
        alias = self.unit.types.get(short)
        key = parts[-1] if alias is not None and alias.template else short
        if key in self.resolving:
            self.cycles += 1
        elif alias is not None and len(self.resolving) < MAX_EXPANSION:
            plain = not alias.template and not self.bindings
            if plain and short in self.unit.resolved_types:
                return self.unit.resolved_types[short]
            self.resolving.add(key)
            cycles = self.cycles
            try:
                found_type = self._alias(alias, parts[-1])
            finally:
                self.resolving.discard(key)
            if plain and (not self.resolving or self.cycles == cycles):  # else a part of it was left out
                self.unit.resolved_types[short] = found_type
            return found_type
        return library_type(self, parts) or BUILTIN_TYPES.get(short) or CType(text, None)

    def _member_type(self, parts: list[str]) -> CType | None:
        """The type that a name inside a struct means: of one that is named, or of those whose text is being read."""
        if len(parts) == 1:
            for origin in reversed(self.around):
                found = member_type(self, CType("", None, origin=origin), parts[0])
                if found is not None:
                    return found
            return None
        return member_type(self, self.named_type("::".join(parts[:-1])), parts[-1])

    def _alias(self, alias: TypeText, text: str) -> CType:
        node = alias.node
        if node.type == "enum_specifier":
            return inside(self, Origin(alias, ()), lambda: self.enum_type(node))
        origin = chosen_text(self, alias, text) if alias.template else Origin(alias, ())
        if node.type == "alias_declaration":
            return inside(self, origin, lambda: self.type_of(node.child_by_field_name("type")))
        if node.type == "type_definition":
            return inside(self, origin, lambda: self.defined_type(node, alias.name))
        return self.struct_type(origin.text.node, origin)

    def defined_type(self, node: Node, name: str) -> CType:
        """The type that a typedef gives a name."""
        base = self.type_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            label = next(descendants(declarator, "type_identifier", "primitive_type", "identifier"), None)
            if label is not None and self.source.node_code(label) == name:
                return self.declared(base, declarator)[0]
        return base

    def struct_type(self, node: Node, origin: Origin) -> CType:
        """The struct that stands at a node, which knows the text that it comes from."""
        made = inside(self, origin, lambda: self._struct(node, origin.text.name))
        return replace(made, origin=origin)

    def elsewhere(
        self, source: Source, bindings: Iterable[tuple[str, CType | int]], around: list[Origin], action: Callable[[], T]
    ) -> T:
        """Run `action` with names read from a struct's text: its parameters, its members, then the file's."""
        outer = self.bindings, self.scopes, self.around
        self.bindings, self.scopes = dict(bindings), [Scope({})]
        self.around = around[-MAX_EXPANSION:]
        try:
            return self.within(source, action)
        finally:
            self.bindings, self.scopes, self.around = outer

    def expression_at(self, node: Node, span: Span) -> ir.Expr:
        """An expression of the present text that stands for a name used at `span`."""
        return self.within(self.source, lambda: self.expression(node), span)

    def _struct(self, node: Node, name: str) -> CType:
        members: list[Member] = []
        body = node.child_by_field_name("body")
        for base in (c for c in node.named_children if c.type == "base_class_clause"):
            for parent in base.named_children:
                if parent.type != "access_specifier":
                    members.append(Member("", self._base_class(parent), base=True))
        fields = list(live_children(self.unit, self.source, body)) if body is not None else []
        if any(self.source.node_code(f).lstrip().startswith("virtual") for f in fields if f.type in _FUNCTIONS):
            plain = all(not m.type.fields for m in members)
            members.insert(0, Member("", pointer_to(INT) if plain else UNKNOWN_TYPE))
        for field in fields:
            if field.type == "field_declaration":
                members += self._members(field)
        align = self._alignment(asked_alignment(node, self.source))
        if align is None:
            members.append(Member("", UNKNOWN_TYPE))
        union = node.type == "union_specifier"
        made = laid_out(name or "struct", members, union, align or 1, packing(node, self.source))
        inner = tuple(
            (n2, offset + o2, t2) for n, offset, t in made.fields if not n and t.fields for n2, o2, t2 in t.fields if n2
        )
        return replace(made, fields=made.fields + inner)

    def _base_class(self, node: Node) -> CType:
        found = self.named_type(self.source.node_code(node))
        origin = found.origin
        if isinstance(origin, Origin):
            return as_base(found, origin.text.node, origin.text.source)
        return found

    def _members(self, field: Node) -> list[Member]:
        """The members that one declaration of a struct's body makes: none for a static one or a function."""
        text = self.source.node_code(field)
        if "static" in text.split("=")[0].split():
            return []
        base_type = self.type_of(field.child_by_field_name("type"))
        declarators = field.children_by_field_name("declarator")
        align = self._alignment(alignment_text(self.source.code_text(field.start_byte, field.end_byte).split("{")[0]))
        if align is None:
            return [Member("", UNKNOWN_TYPE)]
        if not declarators and base_type.fields:  # an anonymous struct or union: its names are the outer's
            return [Member("", base_type, align)]
        found: list[Member] = []
        for declarator in declarators:
            kind, label, reference = self.declared(base_type, declarator)
            if kind.name == "function":
                continue
            following = declarator.next_named_sibling
            width = following.named_children if following is not None and following.type == "bitfield_clause" else []
            bits = self.constant(width[0]) if width else None
            if width and bits is None:
                return [Member("", UNKNOWN_TYPE)]
            found.append(Member(label or "", pointer_to(kind) if reference else kind, align, bits))
        return found

    def _alignment(self, text: str | None) -> int | None:
        """The alignment that a text asks for, 1 where there is none; None where its value is not known."""
        if text is None:
            return 1
        kind = self.type_of_text(text) if re.fullmatch(r"[A-Za-z_]\w*", text) else None
        if kind is not None and kind.size is not None:
            return kind.align
        return self.constant_of_text(text)

    def declared(self, base: CType, node: Node | None) -> tuple[CType, str | None, bool]:
        """(type, name, is a reference) of a declarator around a base type.

        It is walked from the outside in, so that each part wraps what the parts around it made: `(*a)[3]` is an array
        first and then a pointer to it, `*a[3]` a pointer first and then an array of them.
        """
        reference = False
        while node is not None:
            kind = node.type
            if kind in ("pointer_declarator", "abstract_pointer_declarator", "pointer_type_declarator"):
                base = base if base.name == "auto" else pointer_to(base)  # `auto *p = a` is what a is
            elif kind in ("reference_declarator", "abstract_reference_declarator"):
                reference = True
            elif kind in ("array_declarator", "abstract_array_declarator", "array_type_declarator"):
                size = node.child_by_field_name("size")
                base = array_of(base, self.constant(size) if size is not None else None)
            elif kind in ("function_declarator", "abstract_function_declarator"):
                base = CType("function", None)
            elif kind in ("identifier", "field_identifier", "type_identifier", "primitive_type"):
                return base, self.source.node_code(node), reference
            following = node.child_by_field_name("declarator")
            if following is None:
                following = next(
                    (
                        c
                        for c in node.named_children
                        if c.type.endswith("declarator")
                        or c.type in ("identifier", "field_identifier", "type_identifier")
                    ),
                    None,
                )
            node = following
        return base, None, reference

    # -- constants ----------------------------------------------------------------------------------------------

    def constant(self, node: Node) -> int | None:
        """The integer value of a constant expression, or None."""
        return fold(self.expression(node))

    def constant_of_text(self, text: str) -> int | None:
        expression = self.expression_of_text(text, None)
        return fold(expression) if expression is not None else None

    def expression_of_text(self, text: str, at: Span | None) -> ir.Expr | None:
        fragment = self.fragment(f"auto __warpwright = {text};", "init_declarator")
        if fragment is None:
            return None
        source, node = fragment
        value = node.child_by_field_name("value")
        if value is None:
            return None
        return self.within(source, lambda: self.expression(value), at)

    def within(self, source: Source, action: Callable[[], T], at: Span | None = None) -> T:
        """Run `action` with names read from another text; `at` fixes the place of what it makes."""
        outer_source, outer_at = self.source, self.at
        self.source = source
        if at is not None and self.at is None:
            self.at = at
        try:
            return action()
        finally:
            self.source, self.at = outer_source, outer_at


@lru_cache(maxsize=512)
def _parse_fragment(text: str, kind: str) -> tuple[Source, Node] | None:
    """What a fragment is; a macro's body is asked for at each of its uses."""
    source = Source("<macro>", encoded(text))
    if source.root.has_error:
        return None
    node = next(descendants(source.root, kind), None)
    return (source, node) if node is not None else None
