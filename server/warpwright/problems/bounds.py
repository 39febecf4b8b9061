"""How far a kernel reaches into its arrays, as the text shows it: a guard `i < n` bounds what `i` indexes.

Upper bounds only, with every value taken to be at least 0: threadIdx.x is at most blockDim.x - 1, a loop variable one
less than its limit, a guarded expression one less than its guard. An index that nothing bounds gives no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from warpwright.problems.expressions import Binary, Call, Expression, ExpressionError, Name, Number, number, substitute
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source

_ONE = Number(1)
_INDEX = re.compile(r"(threadIdx|blockIdx)\.([xyz])")
_SIZE = re.compile(r"(blockDim|gridDim)\.([xyz])")


def subscripts(body: Node, source: Source, array: str) -> Iterator[Node]:
    """The `array[...]` expressions in a kernel's body."""
    for node in descendants(body, "subscript_expression"):
        argument = node.child_by_field_name("argument")
        if argument is not None and source.node_text(argument) == array:
            yield node


def role(body: Node, source: Source, array: str, is_const: bool) -> str:
    """ "in", "out" or "in-out": what the kernel's text does with an array; "in-out" where it is handed on.

    Both are safe to take for an array that is only written: it merely starts with values in it.
    """
    if is_const:
        return "in"
    indexed = [*subscripts(body, source, array)]
    mentions = sum(source.node_text(n) == array for n in descendants(body, "identifier"))
    if not indexed or mentions != len(indexed):
        return "in-out"
    written = [_is_plain_store(node, source) for node in indexed]
    if all(written):
        return "out"
    return "in-out" if any(written) or any(_is_changed(node) for node in indexed) else "in"


def _is_plain_store(node: Node, source: Source) -> bool:
    parent = node.parent
    if parent is None or parent.type != "assignment_expression" or parent.child_by_field_name("left") != node:
        return False
    operator = parent.child_by_field_name("operator")
    return operator is not None and source.node_text(operator) == "="


def _is_changed(node: Node) -> bool:
    """Whether an element is a compound assignment's target, is counted up, or its address or name is handed on."""
    parent = node.parent
    while parent is not None and parent.type in ("field_expression", "parenthesized_expression"):
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "assignment_expression":
        return parent.child_by_field_name("left") == node
    return parent.type in ("update_expression", "pointer_expression", "argument_list")


def extent(body: Node, source: Source, array: str, constant: Callable[[str], Expression]) -> Expression | None:
    """The elements that the kernel may reach in `array`, over its scalar parameters, gridDim and blockDim.

    `constant` gives a name that the kernel does not define itself (a parameter, a macro). None where an index has no
    bound, or the array is used other than by `array[...]`.
    """
    reader = _Bounds(body, source, constant)
    found: Expression | None = None
    nodes = [*subscripts(body, source, array)]
    if sum(source.node_text(n) == array for n in descendants(body, "identifier")) != len(nodes):
        return None
    for node in nodes:
        indices = node.child_by_field_name("indices")
        try:
            reach = _plus(reader.most(indices.named_children[0], node), _ONE) if indices is not None else None
        except (ExpressionError, IndexError, RecursionError):
            return None
        if reach is not None and reach != found:
            found = reach if found is None else Call("max", (found, reach))
    return found


class _Bounds:
    def __init__(self, body: Node, source: Source, constant: Callable[[str], Expression]) -> None:
        self.body = body
        self.source = source
        self.constant = constant
        self._active: list[str] = []

    def text(self, node: Node) -> str:
        return re.sub(r"\s+", "", self.source.node_text(node))

    def most(self, node: Node, at: Node) -> Expression:
        """The largest value of `node` where it is evaluated at `at`. Raises ExpressionError where nothing bounds it."""
        if node.type == "number_literal":
            return Number(number(self.source.node_text(node)))
        if node.type in ("parenthesized_expression", "cast_expression"):
            return self.most(node.named_children[-1], at)
        guarded = self._guard(self.text(node), at)
        if guarded is not None and not self._is_parameter(node):
            return guarded
        match node.type:
            case "field_expression":
                return self._builtin(self.text(node))
            case "identifier":
                return self._name(self.text(node), at)
            case "conditional_expression":
                parts = [node.child_by_field_name(f) for f in ("consequence", "alternative")]
                return Call("max", tuple(self.most(p, p) for p in parts if p is not None))
            case "call_expression":
                return self._call(node, at)
            case "binary_expression":
                return self._binary(node, at)
        raise ExpressionError(f"`{self.text(node)}` has no bound")

    def _is_parameter(self, node: Node) -> bool:
        """A parameter is its own best bound: `x < w ? x : w - 1` says nothing new of w."""
        if node.type != "identifier":
            return False
        declared = descendants(self.body, "init_declarator", "declaration", "assignment_expression")
        return not any(
            self.text(name) == self.text(node)
            for outer in declared
            for name in [outer.child_by_field_name("declarator") or outer.child_by_field_name("left")]
            if name is not None
        )

    def _builtin(self, text: str) -> Expression:
        if match := _INDEX.fullmatch(text):
            dims = "blockDim" if match[1] == "threadIdx" else "gridDim"
            return Binary("-", Name(f"{dims}.{match[2]}"), _ONE)
        if _SIZE.fullmatch(text):
            return Name(text)
        raise ExpressionError(f"`{text}` has no bound")

    def _call(self, node: Node, at: Node) -> Expression:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        name = unqualified(self.text(function)) if function is not None else ""
        values = arguments.named_children if arguments is not None else []
        if name in ("min", "max") and len(values) == 2:
            return Call(name, tuple(self.most(v, at) for v in values))
        if name in ("static_cast", "int", "size_t", "unsigned", "__ldg") and len(values) == 1:
            return self.most(values[0], at)
        raise ExpressionError(f"`{self.text(node)}` has no bound")

    def _binary(self, node: Node, at: Node) -> Expression:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is None or right is None or operator is None:
            raise ExpressionError(f"`{self.text(node)}` is not complete")
        match self.text(operator):
            case "+":
                return _plus(self.most(left, at), self.most(right, at))
            case "-" if right.type == "number_literal":
                return _plus(self.most(left, at), Number(-number(self.source.node_text(right))))
            case "-":
                return self.most(left, at)
            case "*":
                return substitute(Binary("*", self.most(left, at), self.most(right, at)), {})
            case "/" | "<<" | ">>" as sign if right.type == "number_literal":
                return substitute(Binary(sign, self.most(left, at), self.most(right, at)), {})
            case "%":
                return substitute(Binary("-", self.most(right, at), _ONE), {})
            case "&":
                return Call("min", (self.most(left, at), self.most(right, at)))
        raise ExpressionError(f"`{self.text(node)}` has no bound")

    def _name(self, name: str, at: Node) -> Expression:
        if name in self._active:
            raise ExpressionError(f"`{name}` grows from itself")
        self._active.append(name)
        try:
            values = [*self._values(name)]
            if not values:
                return self.constant(name)
            bounds: list[Expression] = []
            for value in values:
                bound = self.most(value, value)
                if bound not in bounds:
                    bounds.append(bound)
            result = bounds[0]
            for bound in bounds[1:]:
                result = Call("max", (result, bound))
            return result
        finally:
            self._active.pop()

    def _values(self, name: str) -> Iterator[Node]:
        """What is assigned to a variable of the kernel. Raises ExpressionError where it also grows (`i += n`)."""
        for node in descendants(self.body, "init_declarator", "assignment_expression", "update_expression"):
            target = node.child_by_field_name("declarator" if node.type == "init_declarator" else "left")
            target = target or node.child_by_field_name("argument")
            if target is None or self.text(target) != name:
                continue
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            operator = node.child_by_field_name("operator")
            if value is None or (operator is not None and self.text(operator) != "="):
                raise ExpressionError(f"`{name}` grows without a bound in sight")
            yield value

    def _guard(self, text: str, at: Node) -> Expression | None:
        """The bound that holds at `at` because of the conditions around it and the early returns before it."""
        for condition, holds in self._conditions(at):
            for comparison in _conjuncts(condition, holds):
                bound = self._compared(comparison, text, holds, at)
                if bound is not None:
                    return bound
        return None

    def _conditions(self, at: Node) -> Iterator[tuple[Node, bool]]:
        """(condition, whether it is true at `at`), innermost first."""
        inner = at
        for outer in ancestors(at):
            condition = outer.child_by_field_name("condition")
            if condition is not None and outer.type in ("if_statement", "for_statement", "while_statement"):
                then = outer.child_by_field_name("consequence") or outer.child_by_field_name("body")
                if then == inner:
                    yield condition, True
                elif outer.child_by_field_name("alternative") == inner:
                    yield condition, False
            elif condition is not None and outer.type == "conditional_expression":
                if outer.child_by_field_name("consequence") == inner:
                    yield condition, True
                elif outer.child_by_field_name("alternative") == inner:
                    yield condition, False
            elif (
                outer.type == "binary_expression"
                and self._is_and(outer)
                and outer.child_by_field_name("right") == inner
            ):
                left = outer.child_by_field_name("left")
                if left is not None:
                    yield left, True
            if outer.type == "compound_statement":
                for sibling in outer.named_children:
                    if sibling.start_byte >= inner.start_byte:
                        break
                    if (
                        sibling.type == "if_statement"
                        and _leaves(sibling)
                        and (early := sibling.child_by_field_name("condition"))
                    ):
                        yield early, False
            if outer == self.body:
                return
            inner = outer

    def _is_and(self, node: Node) -> bool:
        operator = node.child_by_field_name("operator")
        return operator is not None and self.text(operator) == "&&"

    def _compared(self, node: Node, text: str, holds: bool, at: Node) -> Expression | None:
        """The bound of `text` in `text < E` (true), `text >= E` (false), and the same turned around."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is None or right is None or operator is None:
            return None
        sign = self.text(operator)
        if self.text(right) == text:
            left, right, sign = right, left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        if self.text(left) != text:
            return None
        try:
            if sign == ("<" if holds else ">="):
                return _plus(self.most(right, at), Number(-1))
            if sign == ("<=" if holds else ">") or (sign == "==" and holds):
                return self.most(right, at)
        except ExpressionError:
            return None
        return None


def _conjuncts(condition: Node, holds: bool) -> Iterator[Node]:
    """The comparisons that are all true (joined by &&), or all false (joined by ||)."""
    joined = "&&" if holds else "||"
    stack = [condition]
    while stack:
        node = stack.pop()
        if node.type in ("condition_clause", "parenthesized_expression"):
            stack.extend(node.named_children)
        elif node.type == "binary_expression":
            operator = node.child_by_field_name("operator")
            if operator is not None and operator.type == joined:
                stack.extend(c for c in node.named_children)
            else:
                yield node


def _leaves(statement: Node) -> bool:
    """Whether an `if` without else ends in return or continue."""
    then = statement.child_by_field_name("consequence")
    if then is None or statement.child_by_field_name("alternative") is not None:
        return False
    last = then.named_children[-1] if then.type == "compound_statement" and then.named_children else then
    return last.type in ("return_statement", "continue_statement")


def _plus(left: Expression, right: Expression) -> Expression:
    """A sum with its constant gathered at the end, and `(p - 1) * q + q` as `p * q`."""
    constant = 0
    parts: list[Expression] = []
    for part in (left, right):
        match part:
            case Number(int() as value):
                constant += value
            case Binary("+" | "-" as sign, inner, Number(int() as value)):
                constant += value if sign == "+" else -value
                parts.append(inner)
            case _:
                parts.append(part)
    total: Expression | None = None
    for part in parts:
        total = part if total is None else _row_end(total, part)
    if total is None:
        return Number(constant)
    if constant == 0:
        return total
    return Binary("+", total, Number(constant)) if constant > 0 else Binary("-", total, Number(-constant))


def _row_end(left: Expression, right: Expression) -> Expression:
    match left:
        case Binary("*", Binary("-", rows, Number(1)), width) if width == right:
            return Binary("*", rows, width)
        case Binary("*", width, Binary("-", rows, Number(1))) if width == right:
            return Binary("*", rows, width)
    return Binary("+", left, right)
