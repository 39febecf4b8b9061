"""Expressions of the syntax tree to the form that is interpreted. What is not understood becomes Opaque, and its parts
are still followed. An expression inside a macro stands at the macro's outermost use."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.assembly import barrier_call
from warpwright.facts.constants import LIMITS, number, substitute
from warpwright.facts.declarations import Scope
from warpwright.facts.operators import OperatorReader
from warpwright.facts.preprocessor import Macro
from warpwright.facts.qualified import components, library_value, member_value
from warpwright.facts.steps import NODE
from warpwright.facts.types import (
    BOOL,
    CHAR,
    INT,
    LONG,
    ULONG,
    UNKNOWN_TYPE,
    CType,
)
from warpwright.syntax.nodes import by_reference, descendants, launch_configuration, uncommented
from warpwright.syntax.source import Span

SPECIALS = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
_FORWARDS = re.compile(r"(?:std::)?(?:forward\s*<|move\s*\()")
_AXES = {"x": 0, "y": 1, "z": 2}
_CASTS = {"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast"}
_TYPE_NAMES = {"identifier", "type_identifier", "template_function", "template_type", "qualified_identifier"}
_ASM = {"gnu_asm_expression", "asm_statement"}


class ExpressionReader(OperatorReader):
    """Reads expressions; a lambda's body is a statement, so functions and statements are the subclass's."""

    @abstractmethod
    def function_body(
        self, name: str, parameters: Node | None, body: Node | None, returns: CType, members: Node | None = None
    ) -> ir.Function:
        """A function or lambda with its parameters declared in a scope of their own."""

    def expression(self, node: Node | None) -> ir.Expr:
        if node is None:
            return ir.Opaque(self.at or Span(self.source, 0, 0), [])
        if not self.unit.steps.take(NODE):
            return ir.Opaque(self.span(node), [])
        handler = EXPRESSIONS.get(node.type)
        if handler is None or self.depth > 400:
            return self.opaque(node)
        self.depth += 1
        try:
            return handler(self, node)
        finally:
            self.depth -= 1

    def opaque(self, node: Node) -> ir.Expr:
        if node.type in _ASM:
            return self._assembly(node)
        if self.depth > 400:
            return ir.Opaque(self.span(node), [])
        return ir.Opaque(self.span(node), [self.expression(c) for c in node.named_children if c.type != "comment"])

    def _assembly(self, node: Node) -> ir.Expr:
        code = node.child_by_field_name("assembly_code") or node
        text = "".join(self.source.node_text(part) for part in descendants(code, "string_content", "escape_sequence"))
        values = [part.child_by_field_name("value") for part in descendants(node, "gnu_asm_input_operand")]
        outputs = any(True for _ in descendants(node, "gnu_asm_output_operand"))
        operands = [self.expression(value) for value in values] if not outputs else []
        called = barrier_call(self.span(node), text, operands)
        return called or ir.Opaque(self.span(node), [], is_assembly=True)

    def _number(self, node: Node) -> ir.Expr:
        return number(self.source.node_code(node), self.span(node))

    def _character(self, node: Node) -> ir.Expr:
        text = self.source.node_text(node).strip("'")
        escapes = {"\\n": 10, "\\t": 9, "\\0": 0, "\\r": 13}
        return ir.Const(self.span(node), escapes.get(text, ord(text[-1]) if text else 0), CHAR)

    def _identifier(self, node: Node) -> ir.Expr:
        return self.name(self.source.node_code(node), self.span(node))

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
        if self.this is not None and self.this.member(text) is not None:
            return ir.Member(span, self.name("this", span), text, arrow=False)
        for origin in reversed(self.around):
            constant = member_value(self, CType("", None, origin=origin), text, span)
            if constant is not None:
                return constant
        if text in SPECIALS:
            return ir.Special(span, text, None)
        if text == "warpSize":
            return ir.Const(span, 32, INT)
        macro = self.unit.macros.get(text)
        if macro is not None and macro.parameters is None and text not in self.expanding:
            return self._expand(macro, macro.body, span)
        if text in LIMITS:
            value, kind = LIMITS[text]
            return ir.Const(span, value, kind)
        enumerator = self.unit.enumerators.get(text)
        if enumerator is not None:
            node, step, source = enumerator
            base = self.within(source, lambda: self.constant(node)) if node is not None else 0
            return ir.Const(span, base + step if base is not None else None, INT)
        variable = self.unit.variables.get(text)
        if variable is not None and variable.is_const and variable.space == "host" and variable.value is not None:
            value_node = sole_value(variable.value)
            if text not in self.expanding and value_node is not None and self.may_expand():
                self.expanding.add(text)
                scopes, self.scopes = self.scopes, [Scope({})]
                try:
                    given = self.within(variable.source, lambda: self.expression(value_node), span)
                    type_node = variable.declaration.child_by_field_name("type")
                    kind = self.within(variable.source, lambda: self.type_of(type_node))
                    return ir.Cast(span, kind, given) if kind.kind == "float" else given
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
        if not self.may_expand():
            return ir.Opaque(span, [])
        self.expanding.add(macro.name)
        try:
            found = self.expression_of_text(body, span)
        finally:
            self.expanding.discard(macro.name)
        return found if found is not None else ir.Opaque(span, [])

    def _qualified(self, node: Node) -> ir.Expr:
        text = self.source.node_code(node)
        if re.fullmatch(r"(?:std::)?numeric_limits<[\w\s]+>::(?:max|min|lowest|infinity)", text):
            return ir.Opaque(self.span(node), [])
        parts = components(text)
        known = library_value(self, parts)
        if known is not None:
            return ir.Const(self.span(node), known, BOOL)
        if len(parts) > 1:
            constant = member_value(self, self.named_type("::".join(parts[:-1])), parts[-1], self.span(node))
            if constant is not None:
                return constant
        return self.name(parts[-1].split("<")[0], self.span(node))

    def _parenthesized(self, node: Node) -> ir.Expr:
        inner = uncommented(node)
        return self.expression(inner[-1]) if inner else ir.Opaque(self.span(node), [])

    def _condition_clause(self, node: Node) -> ir.Expr:
        value = node.child_by_field_name("value")
        if value is not None and value.type == "declaration":
            return ir.Opaque(self.span(node), [self.expression(value.child_by_field_name("value"))])
        return self.expression(value)

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
        items = [self.expression(item) for item in uncommented(node.child_by_field_name("indices"))]
        if not items:
            return ir.Opaque(self.span(node), [base])
        index = items[0]
        for item in items[1:]:  # `a[i, j]` is `a[(i, j)]` (C++17, [expr.sub])
            index = ir.Comma(self.span(node), index, item)
        return ir.Index(self.span(node), base, index)

    def _field(self, node: Node) -> ir.Expr:
        argument = node.child_by_field_name("argument")
        name_node = node.child_by_field_name("field")
        name = self.source.node_code(name_node) if name_node is not None else ""
        base = self.expression(argument)
        if isinstance(base, ir.Special) and base.axis is None and name in _AXES:
            return ir.Special(self.span(node), base.name, _AXES[name])
        operator = node.child_by_field_name("operator")
        arrow = operator is not None and operator.type == "->"
        through_this = argument is not None and argument.type == "this"  # `this` is a reference here
        return ir.Member(self.span(node), base, name, arrow and not through_this)

    def _cast(self, node: Node) -> ir.Expr:
        kind = self.type_of(node.child_by_field_name("type"))
        return ir.Cast(self.span(node), kind, self.expression(node.child_by_field_name("value")))

    def _sizeof(self, node: Node) -> ir.Expr:
        kind = node.child_by_field_name("type")
        if kind is not None:
            return ir.Const(self.span(node), self.type_of(kind).size, ULONG)
        inner = node.child_by_field_name("value")
        while inner is not None and inner.type == "parenthesized_expression" and len(uncommented(inner)) == 1:
            inner = uncommented(inner)[0]
        if inner is not None and inner.type in _TYPE_NAMES:  # sizeof(T) of a type reads as an expression
            text = self.source.node_code(inner)
            size = self.named_type(text).size if not isinstance(self.lookup(text), int) else None
            if size is not None:
                return ir.Const(self.span(node), size, ULONG)
        return ir.Const(self.span(node), self._static_type(self.expression(inner)).size, ULONG)

    def _static_type(self, node: ir.Expr) -> CType:
        """The type that a variable, its element or its member was declared with."""
        match node:
            case ir.Var(slot=slot):
                return self.slot_types[slot]
            case ir.Const(type=kind) | ir.Cast(type=kind):
                return kind
            case ir.Index(base=inner) | ir.Deref(pointer=inner):
                return self._static_type(inner).to or UNKNOWN_TYPE
            case ir.Member(base=base, field=name, arrow=arrow):
                whole = self._static_type(base)
                member = ((whole.to or UNKNOWN_TYPE) if arrow else whole).member(name)
                return member[1] if member is not None else UNKNOWN_TYPE
        return UNKNOWN_TYPE

    def _initializer_list(self, node: Node) -> ir.Expr:
        return ir.Construct(self.span(node), None, [self.expression(c) for c in uncommented(node)])

    def _compound_literal(self, node: Node) -> ir.Expr:
        kind = self.type_of(node.child_by_field_name("type"))
        value = node.child_by_field_name("value")
        return ir.Construct(self.span(node), kind, [self.expression(c) for c in uncommented(value)])

    def _lambda(self, node: Node) -> ir.Expr:
        declarator = node.child_by_field_name("declarator")
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        body = node.child_by_field_name("body")
        function = self.function_body("lambda", parameters, body, CType("auto", None))
        function.reference = by_reference(self.source, declarator)
        return ir.Lambda(self.span(node), function)

    def _call(self, node: Node) -> ir.Expr:
        function = node.child_by_field_name("function")
        arguments = uncommented(node.child_by_field_name("arguments"))
        span = self.span(node)
        if function is None or launch_configuration(node) is not None:
            return ir.Opaque(span, [self.expression(a) for a in arguments])
        if function.type == "parenthesized_expression" and len(arguments) == 1:  # (T)(x) reads as a call of (T)
            kind = self.type_in_parentheses(function)
            if kind is not None:
                return ir.Cast(span, kind, self.expression(arguments[0]))
        if function.type == "primitive_type":
            kind = self.named_type(self.source.node_code(function))
            return ir.Cast(span, kind, self.expression(arguments[0] if arguments else None))
        if function.type == "field_expression":
            return self._method_call(function, arguments, span)
        if function.type == "call_expression":  # std::forward<F>(body)(a)
            passed = uncommented(function.child_by_field_name("arguments"))
            if _FORWARDS.match(self.source.node_code(function)) and [each.type for each in passed] == ["identifier"]:
                return self._named_call(passed[0], arguments, span)
        if function.type == "call_expression":  # Op()(a, b)
            called = self.expression(function)
            return ir.Call(span, "operator()", [self.expression(a) for a in arguments], target=called)
        if function.type == "lambda_expression":
            return ir.Call(span, "", [self.expression(a) for a in arguments], target=self.expression(function))
        return self._named_call(function, arguments, span)

    def _method_call(self, function: Node, arguments: list[Node], span: Span) -> ir.Expr:
        field = function.child_by_field_name("field")
        name = self.source.node_code(field).split("<")[0] if field is not None else ""
        argument = self._own_object(function.child_by_field_name("argument"))
        operator = function.child_by_field_name("operator")
        target = self.expression(argument)
        if operator is not None and operator.type == "->" and argument is not None and argument.type != "this":
            target = ir.Deref(target.span, target)
        return ir.Call(span, name, [self.expression(a) for a in arguments], target=target)

    def _own_object(self, argument: Node | None) -> Node | None:
        """`this` in `static_cast<const Self *>(this)->f()` and `static_cast<Self &>(*this).f()`: what a base casts to
        is what the object is."""
        called = argument.child_by_field_name("function") if argument is not None else None
        if argument is None or called is None or not self.source.node_code(called).startswith("static_cast<"):
            return argument
        given = uncommented(argument.child_by_field_name("arguments"))
        inner = given[0] if len(given) == 1 else argument
        pointed = inner.child_by_field_name("argument") if inner.type == "pointer_expression" else None
        inner = pointed if pointed is not None and inner.children[0].type == "*" else inner
        return inner if inner.type == "this" else argument

    def _named_call(self, function: Node, arguments: list[Node], span: Span) -> ir.Expr:
        """A cast, a macro, a local lambda, a constructor or a function, by what its name means here."""
        text = self.source.node_code(function)
        parts = components(text)
        name = parts[-1].split("<")[0].strip()
        given: list[CType | ir.Expr] = []
        template = function
        while template.type == "qualified_identifier":
            inner = template.child_by_field_name("name")
            if inner is None:
                break
            template = inner
        if template.type == "template_function":
            for argument in uncommented(template.child_by_field_name("arguments")):
                given.append(self._template_argument(argument))
        local = self.lookup(name) if name == text else None
        if isinstance(local, CType):
            return ir.Construct(span, local, [self.expression(a) for a in arguments])
        if name in _CASTS:
            kind = given[0] if given and isinstance(given[0], CType) else UNKNOWN_TYPE
            return ir.Cast(span, kind, self.expression(arguments[0] if arguments else None))
        if name == "this_thread_block" or "cooperative_groups" in text or text.startswith("cg::"):
            return ir.Call(span, f"cg::{name}", [self.expression(a) for a in arguments], given)
        macro = self.unit.macros.get(name)
        if macro is not None and macro.parameters is not None and name not in self.expanding:
            return self._expand(macro, substitute(macro, [self.source.plain_text(a) for a in arguments]), span)
        local = self.lookup(name)
        if isinstance(local, int):
            called: ir.Expr = ir.Var(span, local, name)
            return ir.Call(span, name, [self.expression(a) for a in arguments], given, target=called)
        lowered = [self.expression(a) for a in arguments]
        if name in self.unit.methods:
            member = self._member_call(parts, name, lowered, given, span)
            if member is not None:
                return member
        if name not in self.unit.functions:
            kind = self.named_type(text)
            if kind.size is not None and (kind.kind != "other"):
                if kind.kind == "struct":
                    return ir.Construct(span, kind, lowered)
                return ir.Cast(span, kind, lowered[0] if lowered else ir.Const(span, 0, INT))
        return ir.Call(span, name, lowered, given)

    def _member_call(
        self, parts: list[str], name: str, arguments: list[ir.Expr], given: list[CType | ir.Expr], span: Span
    ) -> ir.Expr | None:
        """`Struct<T>::name(...)`, or `name(...)` inside of the struct's own functions."""
        if len(parts) > 1:
            owner = self.named_type("::".join(parts[:-1]))
            return ir.Call(span, name, arguments, given, owner=owner) if owner.origin is not None else None
        around = self.around[-1] if self.around else None
        if around is None or all(text.owner != around.text.name for text in self.unit.methods[name]):
            return None
        if self.this is not None:
            return ir.Call(span, name, arguments, given, target=self.name("this", span))
        return ir.Call(span, name, arguments, given, owner=CType(around.text.name, None, origin=around))

    def _template_argument(self, node: Node) -> CType | ir.Expr:
        if node.type == "type_descriptor":
            text = self.source.node_code(node)
            kind = self.type_of(node)
            if kind.size is None and re.fullmatch(r"\w+", text):
                value = self.name(text, self.span(node))
                if not isinstance(value, ir.Global):
                    return value
            return kind
        return self.expression(node)


def sole_value(value: Node) -> Node | None:
    """The value that `= 4`, `(4)` or `{4}` gives a number; None for a list of several."""
    if value.type not in ("argument_list", "initializer_list"):
        return value
    given = uncommented(value)
    return given[0] if len(given) == 1 else None


_Expression = Callable[[ExpressionReader, Node], ir.Expr]


def _truth(lowerer: ExpressionReader, node: Node) -> ir.Expr:
    return ir.Const(lowerer.span(node), int(node.type == "true"), BOOL)


def _null(lowerer: ExpressionReader, node: Node) -> ir.Expr:
    return ir.Const(lowerer.span(node), 0, LONG)


def _string(lowerer: ExpressionReader, node: Node) -> ir.Expr:
    return ir.Opaque(lowerer.span(node), [])


EXPRESSIONS: dict[str, _Expression] = {
    "number_literal": ExpressionReader._number,
    "char_literal": ExpressionReader._character,
    "identifier": ExpressionReader._identifier,
    "this": ExpressionReader._identifier,
    "type_identifier": ExpressionReader._identifier,
    "qualified_identifier": ExpressionReader._qualified,
    "template_function": ExpressionReader._qualified,
    "parenthesized_expression": ExpressionReader._parenthesized,
    "condition_clause": ExpressionReader._condition_clause,
    "binary_expression": ExpressionReader.binary,
    "unary_expression": ExpressionReader._unary,
    "pointer_expression": ExpressionReader._pointer,
    "update_expression": ExpressionReader._update,
    "assignment_expression": ExpressionReader._assignment,
    "comma_expression": ExpressionReader._comma,
    "conditional_expression": ExpressionReader._conditional,
    "subscript_expression": ExpressionReader._subscript,
    "field_expression": ExpressionReader._field,
    "cast_expression": ExpressionReader._cast,
    "sizeof_expression": ExpressionReader._sizeof,
    "initializer_list": ExpressionReader._initializer_list,
    "compound_literal_expression": ExpressionReader._compound_literal,
    "lambda_expression": ExpressionReader._lambda,
    "call_expression": ExpressionReader._call,
    "true": _truth,
    "false": _truth,
    "null": _null,
    "string_literal": _string,
    "concatenated_string": _string,
}
