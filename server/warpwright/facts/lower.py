"""Functions of the syntax tree to the form that is interpreted (ir.py).

Macros are expanded, with every node of an expansion standing at the outermost use; template parameters are bound to
types and numbers; names become slots. What is not understood becomes Opaque, and its parts are still followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.types import (
    BOOL,
    BUILTIN_TYPES,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    UNKNOWN_TYPE,
    CType,
    array_of,
    builtin_type,
    pointer_to,
    struct_of,
)
from warpwright.facts.unit import FunctionText, Macro, TypeText, Unit, define, live_children
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source, Span

Bindings = Mapping[str, CType | int]
"""What a template's parameters stand for."""

T = TypeVar("T")
MAX_EXPANSION = 24
SPECIALS = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
_AXES = {"x": 0, "y": 1, "z": 2}
_CASTS = {"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast"}
_ASM = {"gnu_asm_expression", "asm_statement"}


@dataclass(slots=True)
class _Scope:
    names: dict[str, int | CType | Callable[[Span], ir.Expr]]


class Lowerer:
    """Lowers one function. `bindings` gives its template parameters, where they are known."""

    def __init__(self, unit: Unit, source: Source, bindings: Bindings | None = None) -> None:
        self.unit = unit
        self.source = source
        self.scopes: list[_Scope] = [_Scope({})]
        self.slot_types: list[CType] = []
        self.at: Span | None = None  # the outermost macro use that is being expanded
        self.depth = 0
        self.expanding: set[str] = set()
        self.resolving: set[str] = set()  # types whose members are being read: a list node points to its like
        self.incomplete: list[str] = []
        self.bindings: dict[str, CType | int] = dict(bindings or {})

    # -- functions ----------------------------------------------------------------------------------------------

    def function(self, text: FunctionText) -> ir.Function:
        for name, is_type, default in text.template:
            if name in self.bindings:
                continue
            if default is not None:
                bound = self.type_of_text(default) if is_type else self.constant_of_text(default)
                if bound is not None:
                    self.bindings[name] = bound
            if is_type and name not in self.bindings:
                self.bindings[name] = CType(name, 4, 4, "float", assumed=True)
        declarator = _function_declarator(text.node)
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        returns = self.type_of(text.node.child_by_field_name("type"))
        return self._function_body(text.name, parameters, text.node.child_by_field_name("body"), returns)

    def _function_body(self, name: str, parameters: Node | None, body: Node | None, returns: CType) -> ir.Function:
        self.scopes.append(_Scope({}))
        lowered: list[ir.FunctionParameter] = []
        for node in live_children(self.unit, self.source, parameters) if parameters is not None else []:
            if node.type in ("parameter_declaration", "optional_parameter_declaration"):
                base = self.type_of(node.child_by_field_name("type"))
                kind, label, reference = self.declared(base, node.child_by_field_name("declarator"))
                if kind.kind == "array":
                    kind = pointer_to(kind.to or UNKNOWN_TYPE)
                slot = self.declare(label or "", kind)
                restrict = "restrict" in self.source.node_text(node)
                lowered.append(ir.FunctionParameter(slot, label or "", kind, reference, restrict))
        statement: ir.Stmt = ir.Block(self.span(body) if body is not None else Span(self.source, 0, 0), [])
        if body is not None:
            statement = self.statement(body)
        self.scopes.pop()
        return ir.Function(name, lowered, statement, len(self.slot_types), returns, self.incomplete)

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

    # -- types --------------------------------------------------------------------------------------------------

    def type_of_text(self, text: str) -> CType | None:
        node = _parse_fragment(f"{text} __warpwright;", "declaration")
        if node is None:
            return None
        source, declaration = node
        return self._within(source, lambda: self._declaration_type(declaration))

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
            return self.named_type(self.source.node_text(name)) if name is not None else UNKNOWN_TYPE
        if node.type == "enum_specifier":
            return INT
        return self.named_type(self.source.node_text(node))

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
        short = text.split("<")[0].rsplit("::", 1)[-1].strip()
        macro = self.unit.macros.get(short)
        if macro is not None and macro.parameters is None and macro.body and self.depth < MAX_EXPANSION:
            self.depth += 1
            found = self.type_of_text(macro.body)
            self.depth -= 1
            return found or UNKNOWN_TYPE
        alias = self.unit.types.get(short)
        if alias is not None and short not in self.resolving:
            plain = not alias.template and not self.bindings
            if plain and short in self.unit.resolved_types:
                return self.unit.resolved_types[short]
            self.resolving.add(short)
            try:
                found_type = self._within(alias.source, lambda: self._alias(alias, text))
            finally:
                self.resolving.discard(short)
            if plain and len(self.resolving) == 0:
                self.unit.resolved_types[short] = found_type
            return found_type
        return BUILTIN_TYPES.get(short) or CType(text, None)

    def _alias(self, alias: TypeText, text: str) -> CType:
        node = alias.node
        if node.type == "enum_specifier":
            return INT
        if node.type == "alias_declaration":
            return self.type_of(node.child_by_field_name("type"))
        if node.type == "type_definition":
            base = node.child_by_field_name("type")
            for declarator in node.children_by_field_name("declarator"):
                name = next(descendants(declarator, "type_identifier", "primitive_type", "identifier"), None)
                if name is not None and self.source.node_text(name) == alias.name:
                    return self.declared(self.type_of(base), declarator)[0]
            return self.type_of(base)
        outer = dict(self.bindings)
        if alias.template:
            arguments = _template_texts(text)
            for (parameter, is_type, default), given in zip(
                alias.template, arguments + [None] * (len(alias.template) - len(arguments)), strict=False
            ):
                chosen = given if given is not None else default
                if chosen is not None:
                    bound = self.type_of_text(chosen) if is_type else self.constant_of_text(chosen)
                    if bound is not None:
                        self.bindings[parameter] = bound
        try:
            return self._struct(node, alias.name)
        finally:
            self.bindings = outer

    def _struct(self, node: Node, name: str) -> CType:
        members: list[tuple[str, CType]] = []
        body = node.child_by_field_name("body")
        for base in (c for c in node.named_children if c.type == "base_class_clause"):
            for parent in base.named_children:
                inherited = self.named_type(self.source.node_text(parent))
                members += [(n, t) for n, _, t in inherited.fields] or [("", inherited)]
        for field in live_children(self.unit, self.source, body) if body is not None else []:
            if field.type != "field_declaration" or "static" in self.source.node_text(field).split("=")[0].split():
                continue
            base_type = self.type_of(field.child_by_field_name("type"))
            declarators = field.children_by_field_name("declarator")
            if any(d.type == "function_declarator" for d in declarators):
                continue
            if not declarators and base_type.fields:  # an anonymous struct or union: its names are the outer's
                members.append(("", base_type))
            for declarator in declarators:
                kind, label, reference = self.declared(base_type, declarator)
                members.append((label or "", pointer_to(kind) if reference else kind))
        text = self.source.text(node.start_byte, body.start_byte if body is not None else node.end_byte)
        aligned = re.search(r"(?:__align__|alignas|aligned)\s*\(+\s*(\d+)", text)
        made = struct_of(
            name or "struct", members, node.type == "union_specifier", int(aligned.group(1)) if aligned else 1
        )
        inner = tuple(
            (n2, offset + o2, t2) for n, offset, t in made.fields if not n and t.fields for n2, o2, t2 in t.fields
        )
        vector = bool(aligned) and made.size in (4, 8, 16)
        return replace(made, fields=made.fields + inner, vector=vector)

    def declared(self, base: CType, node: Node | None) -> tuple[CType, str | None, bool]:
        """(type, name, is a reference) of a declarator around a base type."""
        reference = False
        extents: list[int | None] = []
        while node is not None:
            kind = node.type
            if kind in ("pointer_declarator", "abstract_pointer_declarator", "pointer_type_declarator"):
                base = pointer_to(base)
            elif kind in ("reference_declarator", "abstract_reference_declarator"):
                reference = True
            elif kind in ("array_declarator", "abstract_array_declarator", "array_type_declarator"):
                size = node.child_by_field_name("size")
                extents.append(self.constant(size) if size is not None else None)
            elif kind in ("function_declarator", "abstract_function_declarator"):
                base = CType("function", None)
            elif kind in ("identifier", "field_identifier", "type_identifier", "primitive_type"):
                return self._arrays(base, extents), self.source.node_text(node), reference
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
        return self._arrays(base, extents), None, reference

    @staticmethod
    def _arrays(base: CType, extents: list[int | None]) -> CType:
        for extent in extents:  # the declarator is walked from the last bracket inwards: a[2][3] gives [3, 2]
            base = array_of(base, extent)
        return base

    # -- constants ----------------------------------------------------------------------------------------------

    def constant(self, node: Node) -> int | None:
        """The integer value of a constant expression, or None."""
        return fold(self.expression(node))

    def constant_of_text(self, text: str) -> int | None:
        expression = self.expression_of_text(text, None)
        return fold(expression) if expression is not None else None

    def expression_of_text(self, text: str, at: Span | None) -> ir.Expr | None:
        fragment = _parse_fragment(f"auto __warpwright = {text};", "init_declarator")
        if fragment is None:
            return None
        source, node = fragment
        value = node.child_by_field_name("value")
        if value is None:
            return None
        return self._within(source, lambda: self.expression(value), at)

    def _within(self, source: Source, action: Callable[[], T], at: Span | None = None) -> T:
        """Run `action` with names read from another text; `at` fixes the place of what it makes."""
        outer_source, outer_at = self.source, self.at
        self.source = source
        if at is not None and self.at is None:
            self.at = at
        try:
            return action()
        finally:
            self.source, self.at = outer_source, outer_at

    # -- expressions --------------------------------------------------------------------------------------------

    def expression(self, node: Node | None) -> ir.Expr:
        if node is None:
            return ir.Opaque(self.at or Span(self.source, 0, 0), [])
        handler = _EXPRESSIONS.get(node.type)
        if handler is None or self.depth > 400:
            return self._opaque(node)
        self.depth += 1
        try:
            return handler(self, node)
        finally:
            self.depth -= 1

    def _opaque(self, node: Node) -> ir.Expr:
        if self.depth > 400 or node.type in _ASM:
            return ir.Opaque(self.span(node), [])
        return ir.Opaque(self.span(node), [self.expression(c) for c in node.named_children if c.type != "comment"])

    def _number(self, node: Node) -> ir.Expr:
        return number(self.source.node_text(node), self.span(node))

    def _character(self, node: Node) -> ir.Expr:
        text = self.source.node_text(node).strip("'")
        escapes = {"\\n": 10, "\\t": 9, "\\0": 0, "\\r": 13}
        return ir.Const(self.span(node), escapes.get(text, ord(text[-1]) if text else 0), CHAR)

    def _identifier(self, node: Node) -> ir.Expr:
        return self.name(self.source.node_text(node), self.span(node))

    def name(self, text: str, span: Span) -> ir.Expr:
        """What a name stands for, innermost scope first."""
        found = self.lookup(text)
        if isinstance(found, int):
            return ir.Var(span, found, text)
        if found is not None and not isinstance(found, CType):
            return found(span)
        bound = self.bindings.get(text)
        if isinstance(bound, int):
            return ir.Const(span, bound, INT)
        if text in SPECIALS:
            return ir.Special(span, text, None)
        if text == "warpSize":
            return ir.Const(span, 32, INT)
        macro = self.unit.macros.get(text)
        if macro is not None and macro.parameters is None and text not in self.expanding:
            return self._expand(macro, macro.body, span)
        if text in _LIMITS:
            value, kind = _LIMITS[text]
            return ir.Const(span, value, kind)
        enumerator = self.unit.enumerators.get(text)
        if enumerator is not None:
            node, step, source = enumerator
            base = self._within(source, lambda: self.constant(node)) if node is not None else 0
            return ir.Const(span, base + step if base is not None else None, INT)
        variable = self.unit.variables.get(text)
        if variable is not None and variable.is_const and variable.space == "host" and variable.value is not None:
            value_node = variable.value
            if text not in self.expanding and value_node.type != "initializer_list":
                self.expanding.add(text)
                scopes, self.scopes = self.scopes, [_Scope({})]
                try:
                    return self._within(variable.source, lambda: self.expression(value_node), span)
                finally:
                    self.expanding.discard(text)
                    self.scopes = scopes
        return ir.Global(span, text)

    def _expand(self, macro: Macro, body: str, span: Span) -> ir.Expr:
        if not body:
            return ir.Opaque(span, [])
        literal = number(body.strip("() "), span) if body.strip("() ")[:1].isdigit() else None
        if isinstance(literal, ir.Const) and literal.value is not None:
            return literal
        if len(self.expanding) > MAX_EXPANSION:
            return ir.Opaque(span, [])
        self.expanding.add(macro.name)
        try:
            found = self.expression_of_text(body, span)
        finally:
            self.expanding.discard(macro.name)
        return found if found is not None else ir.Opaque(span, [])

    def _qualified(self, node: Node) -> ir.Expr:
        text = self.source.node_text(node)
        match = re.fullmatch(r"(?:std::)?numeric_limits<\s*([\w ]+)\s*>::(max|min|lowest|infinity)", text)
        if match:
            return ir.Opaque(self.span(node), [])
        return self.name(text.rsplit("::", 1)[-1].split("<")[0], self.span(node))

    def _parenthesized(self, node: Node) -> ir.Expr:
        inner = [c for c in node.named_children if c.type != "comment"]
        return self.expression(inner[-1]) if inner else ir.Opaque(self.span(node), [])

    def _condition_clause(self, node: Node) -> ir.Expr:
        value = node.child_by_field_name("value")
        if value is not None and value.type == "declaration":
            return ir.Opaque(self.span(node), [self.expression(value.child_by_field_name("value"))])
        return self.expression(value)

    def _binary(self, node: Node) -> ir.Expr:
        chain: list[Node] = []
        while node.type == "binary_expression" and len(chain) < 2000:
            chain.append(node)
            left = node.child_by_field_name("left")
            if left is None:
                break
            node = left
        result = self.expression(node) if node.type != "binary_expression" else self._opaque(node)
        for link in reversed(chain):
            operator = link.child_by_field_name("operator")
            op = operator.type if operator is not None else "?"
            right = self.expression(link.child_by_field_name("right"))
            cast = self._type_in_parentheses(node) if link is chain[-1] and op in ("*", "&", "-", "+") else None
            if cast is not None:  # (T)*p reads as a product of (T) and p
                whole = self.span(link)
                inner = {"*": ir.Deref, "&": ir.AddressOf}.get(op)
                operand = inner(whole, right) if inner is not None else ir.Unary(whole, op, right)
                result = ir.Cast(whole, cast, operand)
                continue
            kind = ir.Logical if op in ("&&", "||", "and", "or") else ir.Binary
            op = {"and": "&&", "or": "||"}.get(op, op)
            result = kind(self.span(link), op, result, right)
        return result

    def _type_in_parentheses(self, node: Node) -> CType | None:
        """The type that `(T)` names, or None where it is a value."""
        inner = node.named_children[0] if node.type == "parenthesized_expression" and node.named_children else None
        if inner is None or inner.type not in ("identifier", "type_identifier", "qualified_identifier"):
            return None
        text = self.source.node_text(inner)
        if isinstance(self.lookup(text), int) or text in self.unit.variables or text in self.unit.enumerators:
            return None
        macro = self.unit.macros.get(text)
        if macro is not None and not re.match(r"[A-Za-z_]", macro.body):
            return None
        kind = self.named_type(text)
        return kind if kind.size is not None else None

    def _unary(self, node: Node) -> ir.Expr:
        operator = node.child_by_field_name("operator")
        operand = self.expression(node.child_by_field_name("argument"))
        op = operator.type if operator is not None else "?"
        return ir.Unary(self.span(node), {"not": "!"}.get(op, op), operand)

    def _pointer(self, node: Node) -> ir.Expr:
        operator = node.child_by_field_name("operator")
        target = self.expression(node.child_by_field_name("argument"))
        if operator is not None and operator.type == "&":
            return ir.AddressOf(self.span(node), target)
        return ir.Deref(self.span(node), target)

    def _update(self, node: Node) -> ir.Expr:
        operator = node.child_by_field_name("operator")
        argument = node.child_by_field_name("argument")
        prefix = operator is not None and argument is not None and operator.start_byte < argument.start_byte
        op = "-" if operator is not None and operator.type == "--" else "+"
        return ir.Update(self.span(node), op, self.expression(argument), prefix)

    def _assignment(self, node: Node) -> ir.Expr:
        operator = node.child_by_field_name("operator")
        op = operator.type[:-1] if operator is not None else ""
        target = self.expression(node.child_by_field_name("left"))
        return ir.Assign(self.span(node), op, target, self.expression(node.child_by_field_name("right")))

    def _comma(self, node: Node) -> ir.Expr:
        left = self.expression(node.child_by_field_name("left"))
        return ir.Comma(self.span(node), left, self.expression(node.child_by_field_name("right")))

    def _conditional(self, node: Node) -> ir.Expr:
        condition = self.expression(node.child_by_field_name("condition"))
        then = self.expression(node.child_by_field_name("consequence"))
        return ir.Conditional(
            self.span(node), condition, then, self.expression(node.child_by_field_name("alternative"))
        )

    def _subscript(self, node: Node) -> ir.Expr:
        base = self.expression(node.child_by_field_name("argument"))
        indices = node.child_by_field_name("indices")
        items = [c for c in indices.named_children if c.type != "comment"] if indices is not None else []
        if not items:
            return ir.Opaque(self.span(node), [base])
        for item in items:
            base = ir.Index(self.span(node), base, self.expression(item))
        return base

    def _field(self, node: Node) -> ir.Expr:
        argument = node.child_by_field_name("argument")
        name_node = node.child_by_field_name("field")
        name = self.source.node_text(name_node) if name_node is not None else ""
        base = self.expression(argument)
        if isinstance(base, ir.Special) and base.axis is None and name in _AXES:
            return ir.Special(self.span(node), base.name, _AXES[name])
        operator = node.child_by_field_name("operator")
        arrow = operator is not None and operator.type == "->"
        return ir.Member(self.span(node), base, name, arrow)

    def _cast(self, node: Node) -> ir.Expr:
        kind = self.type_of(node.child_by_field_name("type"))
        return ir.Cast(self.span(node), kind, self.expression(node.child_by_field_name("value")))

    def _sizeof(self, node: Node) -> ir.Expr:
        kind = node.child_by_field_name("type")
        if kind is not None:
            return ir.Const(self.span(node), self.type_of(kind).size, ULONG)
        value = self.expression(node.child_by_field_name("value"))
        if isinstance(value, ir.Global):  # sizeof(T) of a type reads as an expression
            return ir.Const(self.span(node), self.named_type(value.name).size, ULONG)
        if isinstance(value, ir.Var):
            return ir.Const(self.span(node), self.slot_types[value.slot].size, ULONG)
        return ir.Const(self.span(node), None, ULONG)

    def _initializer_list(self, node: Node) -> ir.Expr:
        return ir.Construct(self.span(node), None, [self.expression(c) for c in _arguments(node)])

    def _compound_literal(self, node: Node) -> ir.Expr:
        kind = self.type_of(node.child_by_field_name("type"))
        value = node.child_by_field_name("value")
        return ir.Construct(self.span(node), kind, [self.expression(c) for c in _arguments(value)])

    def _lambda(self, node: Node) -> ir.Expr:
        declarator = node.child_by_field_name("declarator")
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        body = node.child_by_field_name("body")
        return ir.Lambda(self.span(node), self._function_body("lambda", parameters, body, CType("auto", None)))

    def _call(self, node: Node) -> ir.Expr:
        function = node.child_by_field_name("function")
        arguments = _arguments(node.child_by_field_name("arguments"))
        span = self.span(node)
        if function is None or any(c.type == "kernel_call_syntax" for c in node.children):
            return ir.Opaque(span, [self.expression(a) for a in arguments])
        if function.type == "parenthesized_expression" and len(arguments) == 1:  # (T)(x) reads as a call of (T)
            kind = self._type_in_parentheses(function)
            if kind is not None:
                return ir.Cast(span, kind, self.expression(arguments[0]))
        if function.type == "primitive_type":
            kind = self.named_type(self.source.node_text(function))
            return ir.Cast(span, kind, self.expression(arguments[0] if arguments else None))
        if function.type == "field_expression":
            field = function.child_by_field_name("field")
            name = self.source.node_text(field).split("<")[0] if field is not None else ""
            target = self.expression(function.child_by_field_name("argument"))
            return ir.Call(span, name, [self.expression(a) for a in arguments], target=target)
        text = self.source.node_text(function)
        name = text.split("<")[0].rsplit("::", 1)[-1].strip() if function.type != "lambda_expression" else ""
        given: list[CType | ir.Expr] = []
        template = function
        while template.type == "qualified_identifier":
            inner = template.child_by_field_name("name")
            if inner is None:
                break
            template = inner
        if template.type == "template_function":
            for argument in _arguments(template.child_by_field_name("arguments")):
                given.append(self._template_argument(argument))
        if name in _CASTS:
            kind = given[0] if given and isinstance(given[0], CType) else UNKNOWN_TYPE
            return ir.Cast(span, kind, self.expression(arguments[0] if arguments else None))
        if name == "this_thread_block" or "cooperative_groups" in text or text.startswith("cg::"):
            return ir.Call(span, f"cg::{name}", [self.expression(a) for a in arguments], given)
        macro = self.unit.macros.get(name)
        if macro is not None and macro.parameters is not None and name not in self.expanding:
            return self._expand(macro, substitute(macro, [self.source.node_text(a) for a in arguments]), span)
        local = self.lookup(name)
        if isinstance(local, int):
            called: ir.Expr = ir.Var(span, local, name)
            return ir.Call(span, name, [self.expression(a) for a in arguments], given, target=called)
        lowered = [self.expression(a) for a in arguments]
        if name not in self.unit.functions:
            kind = self.named_type(text)
            if kind.size is not None and (kind.kind != "other"):
                if kind.kind == "struct":
                    return ir.Construct(span, kind, lowered)
                return ir.Cast(span, kind, lowered[0] if lowered else ir.Const(span, 0, INT))
        if function.type == "lambda_expression":
            return ir.Call(span, "", lowered, target=self.expression(function))
        return ir.Call(span, name, lowered, given)

    def _template_argument(self, node: Node) -> CType | ir.Expr:
        if node.type == "type_descriptor":
            text = self.source.node_text(node)
            kind = self.type_of(node)
            if kind.size is None and re.fullmatch(r"\w+", text):
                value = self.name(text, self.span(node))
                if not isinstance(value, ir.Global):
                    return value
            return kind
        return self.expression(node)

    # -- statements ---------------------------------------------------------------------------------------------

    def statement(self, node: Node | None) -> ir.Stmt:
        if node is None:
            return ir.Block(self.at or Span(self.source, 0, 0), [])
        handler = _STATEMENTS.get(node.type)
        if handler is not None and self.depth <= 300:
            self.depth += 1
            try:
                return handler(self, node)
            finally:
                self.depth -= 1
        if node.type in _EXPRESSIONS:
            return ir.Evaluate(self.span(node), self.expression(node))
        if node.type == "ERROR":
            self.incomplete.append(f"line {self.span(node).line} could not be read")
            return self._block(node)
        return ir.Block(self.span(node), [])

    def _block(self, node: Node) -> ir.Stmt:
        self.scopes.append(_Scope({}))
        body = [self.statement(child) for child in self._live(node)]
        self.scopes.pop()
        return ir.Block(self.span(node), body)

    def _live(self, node: Node) -> list[Node]:
        """Live statements; a #define among them counts from here on."""
        out: list[Node] = []
        for child in live_children(self.unit, self.source, node):
            if child.type in ("preproc_def", "preproc_function_def"):
                define(self.unit, self.source, child)
            elif child.type != "comment":
                out.append(child)
        return out

    def _expression_statement(self, node: Node) -> ir.Stmt:
        inner = next((c for c in node.named_children if c.type != "comment"), None)
        if inner is None:
            return ir.Block(self.span(node), [])
        if inner.type == "call_expression":
            statement = self._statement_macro(inner)
            if statement is not None:
                return statement
        return ir.Evaluate(self.span(node), self.expression(inner))

    def _statement_macro(self, call: Node) -> ir.Stmt | None:
        """A function-like macro whose body is not an expression."""
        function = call.child_by_field_name("function")
        name = self.source.node_text(function) if function is not None else ""
        macro = self.unit.macros.get(name)
        if macro is None or macro.parameters is None or name in self.expanding or len(self.expanding) > MAX_EXPANSION:
            return None
        arguments = [self.source.node_text(a) for a in _arguments(call.child_by_field_name("arguments"))]
        text = substitute(macro, arguments)
        fragment = _parse_fragment(f"void __warpwright() {{ {text} ; }}", "compound_statement")
        if fragment is None:
            return None
        source, body = fragment
        self.expanding.add(name)
        try:
            return self._within(source, lambda: self._open_block(body), self.span(call))
        finally:
            self.expanding.discard(name)

    def _open_block(self, node: Node) -> ir.Stmt:
        """A block whose declarations stay visible after it, as those of a macro do."""
        return ir.Block(self.span(node), [self.statement(child) for child in self._live(node)])

    def _declaration(self, node: Node) -> ir.Stmt:
        span = self.span(node)
        type_node = node.child_by_field_name("type")
        if type_node is not None and type_node.type in ("struct_specifier", "union_specifier", "class_specifier"):
            label = type_node.child_by_field_name("name")
            if label is not None and type_node.child_by_field_name("body") is not None:
                self.scopes[-1].names[self.source.node_text(label)] = self.type_of(type_node)
        base = self.type_of(type_node)
        head = self.source.text(node.start_byte, node.end_byte).split("=")[0]
        declarators = node.children_by_field_name("declarator")
        shared = "__shared__" in head
        extern = shared and "extern" in head.split("__shared__")[0] + head.split("__shared__")[1][:20]
        out: list[ir.Stmt] = []
        for declarator in declarators:
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            if inner is not None and inner.type == "function_declarator":
                continue
            kind, name, reference = self.declared(base, inner)
            if name is None:
                continue
            place = self.span(declarator)
            if shared:
                variable = self._shared(name, kind, extern, place)
                slot = self.declare(name, kind)
                out.append(ir.Declare(place, slot, name, kind, None, False, variable))
                continue
            init = self.expression(value) if value is not None and value.type != "argument_list" else None
            if value is not None and value.type == "argument_list":
                init = ir.Construct(self.span(value), kind, [self.expression(a) for a in _arguments(value)])
                if kind.kind != "struct" and len(init.arguments) == 1:
                    init = init.arguments[0]
            if kind.kind == "array" and kind.extent is None and isinstance(init, ir.Construct):
                kind = array_of(kind.to or UNKNOWN_TYPE, len(init.arguments))
            slot = self.declare(name, kind)
            folded = fold(init) if init is not None else None
            if folded is not None and kind.is_integer and re.search(r"\b(const|constexpr)\b", head):
                self.scopes[-1].names[name] = _constant_name(folded, kind)
            out.append(ir.Declare(place, slot, name, kind, init, reference))
        return out[0] if len(out) == 1 else ir.Block(span, out)

    def _shared(self, name: str, kind: CType, dynamic: bool, span: Span) -> ir.SharedVariable:
        dims: list[int | None] = []
        element = kind
        while element.kind == "array":
            dims.append(element.extent)
            element = element.to or UNKNOWN_TYPE
        return ir.SharedVariable(name, kind, dynamic, span, tuple(dims), element)

    def _if(self, node: Node) -> ir.Stmt:
        condition = self.expression(node.child_by_field_name("condition"))
        constant = fold(condition) if "constexpr" in self.source.text(node.start_byte, node.start_byte + 14) else None
        alternative = node.child_by_field_name("alternative")
        if constant is not None:
            if constant:
                return self.statement(node.child_by_field_name("consequence"))
            return self.statement(alternative)
        then = self._scoped(node.child_by_field_name("consequence"))
        otherwise = self._scoped(alternative) if alternative is not None else None
        return ir.If(self.span(node), condition, then, otherwise)

    def _scoped(self, node: Node | None) -> ir.Stmt:
        self.scopes.append(_Scope({}))
        out = self.statement(node)
        self.scopes.pop()
        return out

    def _else(self, node: Node) -> ir.Stmt:
        inner = next((c for c in node.named_children if c.type != "comment"), None)
        return self.statement(inner)

    def _for(self, node: Node) -> ir.Stmt:
        self.scopes.append(_Scope({}))
        initializer = node.child_by_field_name("initializer")
        init = self.statement(initializer) if initializer is not None else None
        condition_node = node.child_by_field_name("condition")
        condition = self.expression(condition_node) if condition_node is not None else None
        step_node = node.child_by_field_name("update")
        step = self.expression(step_node) if step_node is not None else None
        body = self.statement(node.child_by_field_name("body"))
        self.scopes.pop()
        return ir.Loop(self.span(node), "for", init, condition, step, body)

    def _range_for(self, node: Node) -> ir.Stmt:
        self.scopes.append(_Scope({}))
        base = self.type_of(node.child_by_field_name("type"))
        kind, name, _ = self.declared(base, node.child_by_field_name("declarator"))
        over = self.expression(node.child_by_field_name("right"))
        slot = self.declare(name or "", kind)
        first = ir.Declare(self.span(node), slot, name or "", kind, ir.Opaque(self.span(node), [over]), False)
        body = self.statement(node.child_by_field_name("body"))
        self.scopes.pop()
        return ir.Block(self.span(node), [first, body])

    def _while(self, node: Node) -> ir.Stmt:
        condition = self.expression(node.child_by_field_name("condition"))
        body = self._scoped(node.child_by_field_name("body"))
        return ir.Loop(self.span(node), "while", None, condition, None, body)

    def _do(self, node: Node) -> ir.Stmt:
        body = self._scoped(node.child_by_field_name("body"))
        condition = self.expression(node.child_by_field_name("condition"))
        return ir.Loop(self.span(node), "do", None, condition, None, body)

    def _switch(self, node: Node) -> ir.Stmt:
        value = self.expression(node.child_by_field_name("condition"))
        cases: list[tuple[ir.Expr | None, list[ir.Stmt]]] = []
        body = node.child_by_field_name("body")
        self.scopes.append(_Scope({}))
        for child in self._live(body) if body is not None else []:
            if child.type == "case_statement":
                label = child.child_by_field_name("value")
                statements = [self.statement(c) for c in self._live(child) if c != label]
                cases.append((self.expression(label) if label is not None else None, statements))
        self.scopes.pop()
        return ir.Switch(self.span(node), value, cases)

    def _return(self, node: Node) -> ir.Stmt:
        value = next((c for c in node.named_children if c.type != "comment"), None)
        return ir.Return(self.span(node), self.expression(value) if value is not None else None)

    def _break(self, node: Node) -> ir.Stmt:
        return ir.Break(self.span(node))

    def _continue(self, node: Node) -> ir.Stmt:
        return ir.Continue(self.span(node))

    def _labeled(self, node: Node) -> ir.Stmt:
        return self.statement(node.named_children[-1] if node.named_children else None)

    def _local_type(self, node: Node) -> ir.Stmt:
        if node.type == "alias_declaration":
            name = node.child_by_field_name("name")
            if name is not None:
                self.scopes[-1].names[self.source.node_text(name)] = self.type_of(node.child_by_field_name("type"))
        elif node.type == "type_definition":
            base = self.type_of(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                kind, label, _ = self.declared(base, declarator)
                if label:
                    self.scopes[-1].names[label] = kind
        else:
            name = node.child_by_field_name("name")
            if name is not None and node.child_by_field_name("body") is not None:
                self.scopes[-1].names[self.source.node_text(name)] = self.type_of(node)
        return ir.Block(self.span(node), [])


def _constant_name(value: int, kind: CType) -> Callable[[Span], ir.Expr]:
    return lambda span: ir.Const(span, value, kind)


def _function_declarator(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(
            (c for c in declarator.named_children if c.type.endswith("declarator")), None
        )
    return declarator


def _arguments(node: Node | None) -> list[Node]:
    return [c for c in node.named_children if c.type != "comment"] if node is not None else []


def _parse_fragment(text: str, kind: str) -> tuple[Source, Node] | None:
    """A piece of text in a little file of its own, and its first node of that kind; None where it does not parse."""
    source = Source("<macro>", text.encode("utf-8"))
    if source.root.has_error:
        return None
    node = next(descendants(source.root, kind), None)
    return (source, node) if node is not None else None


def _template_texts(text: str) -> list[str | None]:
    """The arguments in `Name<a, b<c, d>>`."""
    inside = text[text.find("<") + 1 : text.rfind(">")] if "<" in text else ""
    out: list[str | None] = []
    depth, start = 0, 0
    for i, c in enumerate(inside + ","):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            out.append(inside[start:i].strip())
            start = i + 1
    return [t for t in out if t]


def substitute(macro: Macro, arguments: list[str]) -> str:
    """The body of a function-like macro with its arguments in place (C standard, 6.10.3).

    >>> substitute(Macro("IDX", ("i", "j"), "((i) * N + (j))"), ["y + 1", "x"])
    '((y + 1) * N + (x))'
    """
    names = dict(zip(macro.parameters or (), arguments, strict=False))
    if macro.parameters and macro.parameters[-1] == "...":
        names["__VA_ARGS__"] = ", ".join(arguments[len(macro.parameters) - 1 :])
    body = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: names.get(m.group(0), m.group(0)), macro.body)
    return re.sub(r"\s*##\s*", "", body)


def number(text: str, span: Span) -> ir.Expr:
    """A literal as C reads it: suffixes, hexadecimal, octal, binary, digit separators."""
    clean = text.replace("'", "").lower()
    try:
        if clean.startswith("0x") and "p" not in clean:
            digits = clean.rstrip("ul")
            return ir.Const(span, int(digits, 16), _integer_type(int(digits, 16), clean[len(digits) :]))
        if clean.startswith("0b"):
            digits = clean.rstrip("ul")
            return ir.Const(span, int(digits, 2), _integer_type(int(digits, 2), clean[len(digits) :]))
        if any(c in clean for c in ".ep") or clean.endswith("f"):
            digits = clean.rstrip("fl")
            value = float.fromhex(digits) if digits.startswith("0x") else float(digits)
            return ir.Const(span, value, FLOAT if clean.endswith("f") else DOUBLE)
        digits = clean.rstrip("ul")
        value = int(digits, 8) if len(digits) > 1 and digits.startswith("0") else int(digits)
        return ir.Const(span, value, _integer_type(value, clean[len(digits) :]))
    except (ValueError, OverflowError):
        return ir.Const(span, None, INT)


def _integer_type(value: int, suffix: str) -> CType:
    wide = "l" in suffix or value > 0xFFFFFFFF
    if "u" in suffix:
        return ULONG if wide else UINT
    return LONG if wide or value > 0x7FFFFFFF else INT


def fold(expr: ir.Expr | None) -> int | None:
    """The value of an integer constant expression, or None."""
    match expr:
        case ir.Const(value=value):
            return value if isinstance(value, int) else None
        case ir.Cast(operand=operand, type=kind) if kind.is_integer:
            return fold(operand)
        case ir.Unary(op=op, operand=operand):
            value = fold(operand)
            if value is None:
                return None
            return {"-": -value, "+": value, "~": ~value, "!": int(not value)}.get(op)
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            chosen = fold(condition)
            return None if chosen is None else fold(then if chosen else otherwise)
        case ir.Logical(op=op, left=left, right=right):
            a, b = fold(left), fold(right)
            if a is None or b is None:
                return None
            return int(bool(a and b)) if op == "&&" else int(bool(a or b))
        case ir.Binary(op=op, left=left, right=right):
            a, b = fold(left), fold(right)
            return integer_operation(op, a, b) if a is not None and b is not None else None
        case ir.Call(name=name, arguments=[left, right]) if name in ("max", "min"):
            a, b = fold(left), fold(right)
            return (max if name == "max" else min)(a, b) if a is not None and b is not None else None
    return None


def integer_operation(op: str, a: int, b: int) -> int | None:
    """C's integer arithmetic on unbounded integers; division and modulo truncate towards zero."""
    if op in ("/", "%"):
        if b == 0:
            return None
        quotient = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            quotient = -quotient
        return quotient if op == "/" else a - quotient * b
    if op in ("<<", ">>"):
        if not 0 <= b < 64:
            return None
        return a << b if op == "<<" else a >> b
    operation = _INTEGER.get(op)
    return operation(a, b) if operation is not None else None


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b), ">=": lambda a, b: int(a >= b), "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}  # fmt: skip

_LIMITS: dict[str, tuple[int, CType]] = {
    "INT_MAX": (2**31 - 1, INT), "INT_MIN": (-(2**31), INT), "UINT_MAX": (2**32 - 1, UINT),
    "true": (1, BOOL), "false": (0, BOOL), "NULL": (0, LONG), "nullptr": (0, LONG),
}  # fmt: skip

_Expression = Callable[[Lowerer, Node], ir.Expr]
_Statement = Callable[[Lowerer, Node], ir.Stmt]


def _truth(lowerer: Lowerer, node: Node) -> ir.Expr:
    return ir.Const(lowerer.span(node), int(node.type == "true"), BOOL)


def _null(lowerer: Lowerer, node: Node) -> ir.Expr:
    return ir.Const(lowerer.span(node), 0, LONG)


def _string(lowerer: Lowerer, node: Node) -> ir.Expr:
    return ir.Opaque(lowerer.span(node), [])


_EXPRESSIONS: dict[str, _Expression] = {
    "number_literal": Lowerer._number,
    "char_literal": Lowerer._character,
    "identifier": Lowerer._identifier,
    "type_identifier": Lowerer._identifier,
    "qualified_identifier": Lowerer._qualified,
    "parenthesized_expression": Lowerer._parenthesized,
    "condition_clause": Lowerer._condition_clause,
    "binary_expression": Lowerer._binary,
    "unary_expression": Lowerer._unary,
    "pointer_expression": Lowerer._pointer,
    "update_expression": Lowerer._update,
    "assignment_expression": Lowerer._assignment,
    "comma_expression": Lowerer._comma,
    "conditional_expression": Lowerer._conditional,
    "subscript_expression": Lowerer._subscript,
    "field_expression": Lowerer._field,
    "cast_expression": Lowerer._cast,
    "sizeof_expression": Lowerer._sizeof,
    "initializer_list": Lowerer._initializer_list,
    "compound_literal_expression": Lowerer._compound_literal,
    "lambda_expression": Lowerer._lambda,
    "call_expression": Lowerer._call,
    "true": _truth,
    "false": _truth,
    "null": _null,
    "string_literal": _string,
    "concatenated_string": _string,
}

_STATEMENTS: dict[str, _Statement] = {
    "compound_statement": Lowerer._block,
    "expression_statement": Lowerer._expression_statement,
    "declaration": Lowerer._declaration,
    "if_statement": Lowerer._if,
    "else_clause": Lowerer._else,
    "for_statement": Lowerer._for,
    "for_range_loop": Lowerer._range_for,
    "while_statement": Lowerer._while,
    "do_statement": Lowerer._do,
    "switch_statement": Lowerer._switch,
    "return_statement": Lowerer._return,
    "break_statement": Lowerer._break,
    "continue_statement": Lowerer._continue,
    "labeled_statement": Lowerer._labeled,
    "alias_declaration": Lowerer._local_type,
    "type_definition": Lowerer._local_type,
    "struct_specifier": Lowerer._local_type,
    "attributed_statement": Lowerer._labeled,
}
