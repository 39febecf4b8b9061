"""Operators between two expressions, by the precedence of C++. The grammar knows no types: what it takes for a cast may
be an operand in parentheses and an operator, and the reverse."""

from __future__ import annotations

import re
from abc import abstractmethod

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.declarations import DeclarationReader
from warpwright.facts.types import CType
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Span

CAST_OR_PRODUCT = re.compile(r"\(\s*\w+\s*\)\s*[-+*&]")
PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip


class OperatorReader(DeclarationReader):
    """Reads what stands between operators; the operands are the subclass's."""

    @abstractmethod
    def expression(self, node: Node | None) -> ir.Expr:
        """The form of one expression; Opaque for none and for one that is not understood."""

    @abstractmethod
    def name(self, text: str, span: Span) -> ir.Expr:
        """What a name stands for, innermost scope first."""

    @abstractmethod
    def opaque(self, node: Node) -> ir.Expr:
        """An expression that is not understood, with its parts."""

    def binary(self, node: Node) -> ir.Expr:
        if CAST_OR_PRODUCT.search(self.source.node_code(node)):
            tokens = self._tokens(node)
            if any(isinstance(token, ir.Expr) for token in tokens):
                return self._climb(tokens, self.span(node), 0)
        chain: list[Node] = []
        while node.type == "binary_expression" and len(chain) < 2000:
            chain.append(node)
            left = node.child_by_field_name("left")
            if left is None:
                break
            node = left
        result = self.expression(node) if node.type != "binary_expression" else self.opaque(node)
        for link in reversed(chain):
            operator = link.child_by_field_name("operator")
            op = operator.type if operator is not None else "?"
            right = self.expression(link.child_by_field_name("right"))
            cast = self.type_in_parentheses(node) if link is chain[-1] and op in ("*", "&", "-", "+") else None
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

    def _tokens(self, node: Node) -> list[Node | ir.Expr | str]:
        """The operands of unparenthesised operators and, between them, the operators. What reads as a cast to
        something that is no type is two operands: in `(y)*(N)+(x)` there is no cast of `+(x)` to N."""
        chain: list[Node] = []
        while node.type == "binary_expression" and len(chain) < 2000 and node.child_by_field_name("left") is not None:
            chain.append(node)
            node = node.child_by_field_name("left") or node
        out = self._operand_tokens(node)
        for link in reversed(chain):
            operator, right = link.child_by_field_name("operator"), link.child_by_field_name("right")
            out.append(operator.type if operator is not None else "?")
            out += self._tokens(right) if right is not None else []
        return out

    def _operand_tokens(self, node: Node) -> list[Node | ir.Expr | str]:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        operator = value.child_by_field_name("operator") if value is not None else None
        argument = value.child_by_field_name("argument") if value is not None else None
        if node.type != "cast_expression" or kind is None or operator is None or argument is None:
            return [node]
        name = self.source.node_code(kind).strip()
        if operator.type not in ("+", "-", "*", "&") or not name.isidentifier() or not self.is_value(name):
            return [node]
        return [self.name(name, self.span(kind)), operator.type, *self._operand_tokens(argument)]

    def is_value(self, name: str) -> bool:
        """Whether a name is a variable or a number, and no type."""
        found = self.lookup(name)
        if found is not None:
            return not isinstance(found, CType)
        if name in self.bindings:
            return isinstance(self.bindings[name], int)
        if name in self.unit.macros:
            return self.named_type(name).size is None
        return name in self.unit.variables or name in self.unit.enumerators

    def _climb(self, tokens: list[Node | ir.Expr | str], span: Span, least: int) -> ir.Expr:
        """Operands and operators by the precedence of C++; takes from the front of the list."""
        first = tokens.pop(0)
        result = self.expression(first) if isinstance(first, Node) else first if isinstance(first, ir.Expr) else None
        if result is None:
            return ir.Opaque(span, [])
        while len(tokens) > 1:
            op = tokens[0]
            if not isinstance(op, str) or PRECEDENCE.get(op, 0) < least or op not in PRECEDENCE:
                break
            tokens.pop(0)
            right = self._climb(tokens, span, PRECEDENCE[op] + 1)
            kind = ir.Logical if op in ("&&", "||") else ir.Binary
            result = kind(span, op, result, right)
        return result

    def type_in_parentheses(self, node: Node) -> CType | None:
        """The type that `(T)` names, or None where it is a value."""
        inner = uncommented(node)[0] if node.type == "parenthesized_expression" and uncommented(node) else None
        if inner is None or inner.type not in ("identifier", "type_identifier", "qualified_identifier"):
            return None
        text = self.source.node_code(inner)
        if isinstance(self.lookup(text), int) or text in self.unit.variables or text in self.unit.enumerators:
            return None
        macro = self.unit.macros.get(text)
        if macro is not None and not re.match(r"[A-Za-z_]", macro.body):
            return None
        kind = self.named_type(text)
        return kind if kind.size is not None else None
