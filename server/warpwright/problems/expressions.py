"""Small integer and floating-point expressions over shape symbols: extents, grids and scalar values.

The language is C's: numbers, names (`n`, `gridDim.x`, `sizes[0]`), `+ - * / %`, shifts, comparisons, `&& || !`, `?:`,
and the functions min, max, ceil and floor. Integers divide as in C, towards zero. Nothing else can be said in it, so
evaluating a text that a stranger wrote is safe.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warpwright.algebra.integers import integer_operation

LARGEST = 1 << 48
"""No extent, grid or value is larger; a bigger intermediate is an error and not an endless computation."""

Value = int | float


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Number:
    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Name | Unary | Binary | Conditional | Call

_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "<<": 5, ">>": 5, "+": 6, "-": 6,
    "*": 7, "/": 7, "%": 7,
}  # fmt: skip
OPERATORS = frozenset(_PRECEDENCE)
_FUNCTIONS = {"min": min, "max": max}
_ROUNDINGS = {"ceil": math.ceil, "floor": math.floor}
FUNCTIONS = frozenset({*_FUNCTIONS, *_ROUNDINGS})
_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFuUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)|(?P<operator>\|\||&&|[=!<>]=|<<|>>|[-+*/%()<>?:,!]))"
)


def number(text: str) -> Value:
    """A C literal. Raises ExpressionError.

    >>> number("0x10u"), number("1e3f"), number("2.5"), number("7ull")
    (16, 1000.0, 2.5, 7)
    """
    plain = text.replace("'", "")
    try:
        if plain[:2].lower() == "0x":
            return int(plain.rstrip("uUlL"), 16)
        if re.search(r"[.eE]|[fF]$", plain):
            return float(plain.rstrip("fFlL"))
        digits = plain.rstrip("uUlL")
        return int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
    except ValueError:
        raise ExpressionError(f"`{text}` is not a number") from None


def parse(text: str) -> Expression:
    """Read an expression. Raises ExpressionError with the place where it stops making sense.

    >>> show(parse("((n) + 31) / 32 * (2 - k)"))
    '(n + 31) / 32 * (2 - k)'
    >>> parse("n +")
    Traceback (most recent call last):
    ...
    warpwright.problems.expressions.ExpressionError: `n +` ends where a value should stand
    """
    parser = _Parser(text)
    result = parser.conditional()
    if parser.token:
        raise ExpressionError(f"`{text}` cannot be read from `{parser.token}` on")
    return result


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at, stripped = 0, text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if not match or len(self.tokens) > 500:
                raise ExpressionError(f"`{text}` cannot be read from `{stripped[at:].strip()[:20]}` on")
            self.tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            at = match.end()
        self.at = 0

    @property
    def token(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        if self.token == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise ExpressionError(f"`{self.text}` lacks a `{token}`")

    def conditional(self) -> Expression:
        condition = self.binary(1)
        if not self.take("?"):
            return condition
        then = self.conditional()
        self.expect(":")
        return Conditional(condition, then, self.conditional())

    def binary(self, level: int) -> Expression:
        left = self.unary()
        while (rank := _PRECEDENCE.get(self.token, 0)) >= level:
            operator = self.token
            self.at += 1
            left = Binary(operator, left, self.binary(rank + 1))
        return left

    def unary(self) -> Expression:
        for operator in ("-", "+", "!"):
            if self.take(operator):
                operand = self.unary()
                return operand if operator == "+" else Unary(operator, operand)
        if self.take("("):
            inside = self.conditional()
            self.expect(")")
            return inside
        if self.at >= len(self.tokens):
            raise ExpressionError(f"`{self.text}` ends where a value should stand")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return Number(number(token))
        if kind != "name":
            raise ExpressionError(f"`{self.text}` has `{token}` where a value should stand")
        if not self.take("("):
            return Name(token)
        arguments = [self.conditional()]
        while self.take(","):
            arguments.append(self.conditional())
        self.expect(")")
        return Call(token, tuple(arguments))


def show(expression: Expression, rank: int = 0) -> str:
    """The expression as text, with no more parentheses than it needs."""
    match expression:
        case Number(value):
            return repr(value)
        case Name(name):
            return name
        case Unary(operator, operand):
            return operator + show(operand, 8)
        case Binary(operator, left, right):
            own = _PRECEDENCE[operator]
            text = f"{show(left, own)} {operator} {show(right, own + 1)}"
            return f"({text})" if own < rank else text
        case Conditional(condition, then, otherwise):
            text = f"{show(condition, 1)} ? {show(then)} : {show(otherwise)}"
            return f"({text})" if rank else text
        case Call(function, arguments):
            return f"{function}({', '.join(map(show, arguments))})"


def evaluate(expression: Expression | str, values: Mapping[str, Value]) -> Value:
    """The value where the symbols have `values`. Raises ExpressionError.

    >>> evaluate("(n + 255) / 256", {"n": 1000}), evaluate("-7 / 2", {}), evaluate("-7 % 2", {})
    (4, -3, -1)
    >>> evaluate("n > 4 ? ceil(n / 2.0) : 0", {"n": 9})
    5
    >>> evaluate("n / m", {"n": 1, "m": 0})
    Traceback (most recent call last):
    ...
    warpwright.problems.expressions.ExpressionError: `n / m` divides by zero
    """
    tree = parse(expression) if isinstance(expression, str) else expression
    value = _evaluate(tree, values)
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError(f"`{show(tree)}` is not finite")
    return value


def _evaluate(tree: Expression, values: Mapping[str, Value]) -> Value:
    match tree:
        case Number(value):
            return value
        case Name(name):
            if name not in values:
                raise ExpressionError(f"`{name}` has no value")
            return values[name]
        case Unary(operator, operand):
            value = _evaluate(operand, values)
            return -value if operator == "-" else int(not value)
        case Conditional(condition, then, otherwise):
            return _evaluate(then if _evaluate(condition, values) else otherwise, values)
        case Call(function, arguments):
            evaluated = [_evaluate(a, values) for a in arguments]
            if function in _ROUNDINGS and len(evaluated) == 1:
                return _ROUNDINGS[function](evaluated[0])
            if function in _FUNCTIONS and len(evaluated) == 2:
                return _FUNCTIONS[function](evaluated)
            raise ExpressionError(f"`{show(tree)}` calls a function that is not min, max, ceil or floor")
        case Binary(operator, left, right):
            if operator in ("&&", "||"):
                first = bool(_evaluate(left, values))
                return int(first if first == (operator == "||") else bool(_evaluate(right, values)))
            result = _apply(tree, operator, _evaluate(left, values), _evaluate(right, values))
            if abs(result) > LARGEST:
                raise ExpressionError(f"`{show(tree)}` is too large")
            return result


_PLAIN: dict[str, Callable[[Value, Value], Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}


def _apply(tree: Expression, operator: str, left: Value, right: Value) -> Value:
    if operator in _PLAIN:
        return _PLAIN[operator](left, right)
    if operator == "/" and (isinstance(left, float) or isinstance(right, float)):
        if right == 0:
            raise ExpressionError(f"`{show(tree)}` divides by zero")
        return left / right
    if isinstance(left, float) or isinstance(right, float):
        raise ExpressionError(f"`{show(tree)}` takes whole numbers")
    result = integer_operation(operator, left, right)
    if result is None:
        what = f"shifts by {right}" if operator in ("<<", ">>") else "divides by zero"
        raise ExpressionError(f"`{show(tree)}` {what}")
    return result


def names(expression: Expression) -> frozenset[str]:
    """The symbols that an expression depends on.

    >>> sorted(names(parse("min(n, m) * gridDim.x + 1")))
    ['gridDim.x', 'm', 'n']
    """
    match expression:
        case Name(name):
            return frozenset({name})
        case Unary(_, operand):
            return names(operand)
        case Binary(_, left, right):
            return names(left) | names(right)
        case Conditional(condition, then, otherwise):
            return names(condition) | names(then) | names(otherwise)
        case Call(_, arguments):
            return frozenset().union(*map(names, arguments))
        case _:
            return frozenset()


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with symbols replaced, and what became constant computed.

    >>> show(substitute(parse("(n + b - 1) / b"), {"b": Number(256), "n": Name("size")}))
    '(size + 255) / 256'
    """
    match expression:
        case Name(name):
            return values.get(name, expression)
        case Unary(operator, operand):
            return _folded(Unary(operator, substitute(operand, values)))
        case Binary(operator, left, right):
            return _folded(Binary(operator, substitute(left, values), substitute(right, values)))
        case Conditional(condition, then, otherwise):
            parts = (substitute(p, values) for p in (condition, then, otherwise))
            return _folded(Conditional(*parts))
        case Call(function, arguments):
            return _folded(Call(function, tuple(substitute(a, values) for a in arguments)))
        case _:
            return expression


def _folded(expression: Expression) -> Expression:
    """A constant computed, and `x + a - b` with constants a and b gathered."""
    if not names(expression):
        try:
            return Number(evaluate(expression, {}))
        except ExpressionError:
            return expression
    match expression:
        case Binary("-" | "+" as outer, Binary("-" | "+" as inner, left, Number(int() as a)), Number(int() as b)):
            total = (a if inner == "+" else -a) + (b if outer == "+" else -b)
            return Binary("+", left, Number(total)) if total >= 0 else Binary("-", left, Number(-total))
        case Binary("*", left, Number(1)) | Binary("*", Number(1), left) | Binary("/", left, Number(1)):
            return left
        case Binary("+" | "-", left, Number(0)) | Binary("+", Number(0), left):
            return left
        case _:
            return expression


def split_arguments(text: str) -> list[str]:
    """The parts between the commas that stand in no parentheses.

    >>> split_arguments("min(a, b), 2")
    ['min(a, b)', '2']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
