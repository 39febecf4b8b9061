"""Text to tree. The grammar is in docs/formulas.md; `printer` is the inverse."""

from __future__ import annotations

import difflib
import math
from typing import NoReturn

from warpwright.formulas.functions import COMPARISONS, FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.lexer import FormulaError, Token, tokens_of
from warpwright.formulas.tree import (
    Call,
    Declaration,
    Equation,
    Expr,
    Load,
    Name,
    Num,
    Outside,
    Range,
    Reduce,
    Written,
    height,
)  # fmt: skip
from warpwright.formulas.types import type_named

LEVELS: dict[str, int] = {
    "or": 2, "and": 3, **dict.fromkeys(COMPARISONS, 5), "|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10,
    "*": 11, "/": 11, "//": 11, "%": 11,
}  # fmt: skip
"""How tightly an operator of two sides binds; what binds tighter is higher."""
CHOICE, NO_CHOICE, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = 0, 1, 4, 5, 10, 11, 12, 13, 14
LAYOUTS = ("row", "column", "channels_last")
MOST_DEPTH = 100
"""Of expressions in each other, at most; a sum of 100 terms is 100 deep."""
MOST_EQUATIONS = 200
_BEGINS_EQUATION = ("[", "=", "'", ":", "+=", "*=")
_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "true": True, "false": False}
_OUTSIDE: dict[str, Outside] = {"clamp": "clamp", "wrap": "wrap", "reflect": "reflect"}


def body_level(op: str) -> int:
    """What a reduction stops at: a sum ends before + and -, `any` and `all`, which take a comparison, before `and`."""
    return NOT - 1 if op in ("any", "all") else SUM


def parse(text: str) -> Written:
    """The formula as it is written. Raises FormulaError with the place of what is wrong.

    >>> parse("y[i] = 2 * x[i]").equations[0].value
    Call(name='*', args=(Num(value=2), Load(tensor='x', index=(Name(name='i'),), outside=None)))
    """
    return _Parser(text).formula()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.position = 0
        self.depth = 0
        self.last_load: tuple[Token, int] | None = None
        """The element that was read last, and where the tokens go on behind it."""

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def after(self, count: int = 1) -> Token:
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.token
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def taken(self, text: str) -> bool:
        """Whether the next token is `text`, which is then passed."""
        if self.token.text != text or self.token.kind == "end":
            return False
        self.next()
        return True

    def expect(self, text: str, of: str) -> Token:
        if self.token.text != text:
            self.fail(f"'{text}' is expected {of}, not {self._shown()}.")
        return self.next()

    def comma_or(self, end: str, of: str) -> None:
        """A comma, after which a list goes on that `end` would have ended."""
        if not self.taken(","):
            self.fail(f"',' or '{end}' is expected {of}, not {self._shown()}.")

    def _shown(self) -> str:
        return f"'{self.token.text}'" if self.token.text else "the end"

    def fail(self, reason: str, at: Token | None = None) -> NoReturn:
        raise FormulaError(self.text, (at or self.token).at, reason)

    def name(self, what: str) -> Token:
        if self.token.kind != "name":
            self.fail(f"{what} is expected, not {self._shown()}.")
        if self.token.text in KEYWORDS:
            self.fail(f"'{self.token.text}' has a meaning of its own: choose another name.")
        return self.next()

    def not_reduction(self, name: Token) -> None:
        if name.text in REDUCTIONS:
            self.fail(f"'{name.text}' is a reduction: choose another name.", name)

    # Equations and declarations

    def formula(self) -> Written:
        equations: list[Equation] = []
        declarations: list[Declaration] = []
        temporary = False
        while self.token.kind != "end":
            if self.taken(","):
                continue
            if self.token.text == "where":
                self.next()
                if not equations:
                    self.fail("'where' follows an equation: write first what is computed.")
                temporary = True
            elif self.after().text == ":":
                declarations.append(self.declaration())
            else:
                if len(equations) == MOST_EQUATIONS:
                    self.fail(f"A formula has at most {MOST_EQUATIONS} equations.")
                equations.append(self.equation(temporary))
        if not equations:
            self.fail("An equation is missing, as in y[i] = 2 * x[i].")
        return Written(tuple(equations), tuple(declarations))

    def declaration(self) -> Declaration:
        name = self.name("A name")
        self.not_reduction(name)
        self.next()
        kind = self.type()
        extents: tuple[Expr, ...] | None = None
        strides: tuple[Expr, ...] = ()
        layout = "row"
        fields: tuple[str, ...] = ()
        if self.taken("["):
            extents = self.listed("]", "after the extents")
        if self.taken("("):
            strides = self.listed(")", "after the strides")
            if extents is None or len(strides) != len(extents):
                self.fail(f"{name.text} has {len(extents or ())} extents, but {len(strides)} in its strides.", name)
        elif self.token.text in LAYOUTS and not self._begins_equation():
            layout = self.next().text
        if self.taken("{"):
            fields = self.fields(name)
            if extents is None:
                self.fail(f"A packed struct has extents, as in {name.text}: f32[N]{{x, y, z}}.", name)
        return Declaration(name.text, kind, extents, strides, layout, fields, name.at)

    def _begins_equation(self) -> bool:
        """Whether the next token, a word for a layout, is the name of an array."""
        return self.after().text in _BEGINS_EQUATION or (
            self.after().text in ("max", "min") and self.after(2).text == "="
        )

    def fields(self, of: Token) -> tuple[str, ...]:
        found: list[str] = []
        while not self.taken("}"):
            if found:
                self.comma_or("}", "after a field")
            field = self.name(f"The name of a field, as in {of.text}: f32[N]{{x, y, z}},")
            if field.text in found:
                self.fail(f"{of.text} has two fields {field.text}.", field)
            found.append(field.text)
        if not found:
            self.fail(f"{of.text} has no fields: name them, as in {{x, y, z}}.", of)
        return tuple(found)

    def type(self) -> str:
        token = self.name("An element type, as f32 or bf16,")
        kind = type_named(token.text)
        if kind is None:
            self.fail(f"'{token.text}' is no element type: f64, f32, f16, bf16, f8e4m3, i32, ...", token)
        return kind.name

    def equation(self, temporary: bool) -> Equation:
        begin = self.position
        name = self.name("An equation, as in y[i] = 2 * x[i],")
        self.not_reduction(name)
        primed = self.taken("'")
        index = self.listed("]", f"after the indices of {name.text}") if self.taken("[") else ()
        combine = ""
        if self.token.text in ("+=", "*="):
            combine = self.next().text[0]
        elif self.token.text in ("max", "min") and self.after().text == "=":
            combine = self.next().text
            self.next()
        else:
            if self.token.text != "=" and self.last_load is not None and self.last_load[1] == begin:
                read = self.last_load[0]
                self.fail(f"'{read.text}' is no reduction: there are {', '.join(REDUCTIONS)}.", read)
            self.expect("=", f"after {name.text}")
        value = self.expression()
        if height(value) > MOST_DEPTH or any(height(each) > MOST_DEPTH for each in index):
            self.too_deep(name)
        return Equation(name.text, index, value, combine, primed, temporary, name.at)

    def too_deep(self, at: Token | None = None) -> NoReturn:
        reason = f"More than {MOST_DEPTH} expressions stand in each other"
        self.fail(f"{reason}: name parts with 'where', or write a long sum as a reduction.", at)

    def listed(self, end: str, of: str) -> tuple[Expr, ...]:
        """Expressions up to the sign `end`, which is passed."""
        found: list[Expr] = []
        while not self.taken(end):
            if found:
                self.comma_or(end, of)
            found.append(self.expression())
        return tuple(found)

    # Expressions

    def expression(self, level: int = CHOICE) -> Expr:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            self.too_deep()
        left = self.prefix(level)
        while True:
            sign = self.token
            if sign.text == "if" and level == CHOICE:
                left = self.select(left)
                continue
            own = LEVELS.get(sign.text) if sign.kind != "end" else None
            if own is None or own <= level:
                break
            self.next()
            right = self.expression(own)
            left = Call(sign.text, (left, right), left.at)
            if sign.text in COMPARISONS and self.token.text in COMPARISONS:
                self.fail("Comparisons do not chain: join two with 'and'.")
        self.depth -= 1
        return left

    def select(self, then: Expr) -> Expr:
        self.next()
        condition = self.expression(NO_CHOICE)
        self.expect("else", "after the condition of 'if'")
        return Call("select", (condition, then, self.expression()), then.at)

    def prefix(self, level: int) -> Expr:
        token = self.token
        if token.text == "not" and level < NOT:
            self.next()
            return Call("not", (self.expression(NOT - 1),), token.at)
        if token.text in ("-", "~", "+") and token.kind == "sign":
            literal = self.after().kind == "number" or self.after().text in ("inf", "pi")
            self.next()
            operand = self.expression(SIGN)
            if token.text == "+":
                return operand
            if token.text == "-" and literal and isinstance(operand, Num):
                return Num(-operand.value, token.at)
            return Call("neg" if token.text == "-" else "~", (operand,), token.at)
        base = self.atom()
        if self.token.text == "**":
            self.next()
            return Call("**", (base, self.expression(SIGN)), base.at)
        return base

    def atom(self) -> Expr:
        token = self.next()
        if token.kind == "number":
            return Num(self.number(token), token.at)
        if token.text == "(" and token.kind == "sign":
            inner = self.expression()
            self.expect(")", "to close the parenthesis")
            return inner
        if token.kind != "name":
            self.position -= token.kind != "end"
            self.fail(f"A value is expected, not {self._shown()}.")
        if token.text in _CONSTANTS:
            return Num(_CONSTANTS[token.text], token.at)
        if token.text in KEYWORDS:
            self.fail(f"A value is expected, not '{token.text}'.", token)
        if token.text in REDUCTIONS and (token.text not in FUNCTIONS or self.token.text != "("):
            return self.reduction(token)
        if self.taken("("):
            return self.call(token)
        if self.taken("'"):
            token = Token("name", f"{token.text}'", token.at)
        if self.taken("["):
            return self.load(token)
        return Name(token.text, token.at)

    def number(self, token: Token) -> int | float:
        text = token.text.lower()
        if not text.startswith("0x") and not text.isdigit():
            value = float(text)
            if math.isinf(value):
                self.fail("The number is beyond f64: write inf for infinity.", token)
            return value
        whole = int(text, 16 if text.startswith("0x") else 10) if len(text) <= 40 else 1 << 64
        if whole >= 1 << 64:
            self.fail("The whole number is beyond 64 bits: write it with a point or an exponent.", token)
        return whole

    def call(self, name: Token) -> Expr:
        args = self.listed(")", f"after an argument of {name.text}")
        cast = type_named(name.text)
        if cast is not None:
            if len(args) != 1:
                self.fail(f"A cast takes one value: {cast.name}(x).", name)
            return Call(cast.name, args, name.at)
        known = FUNCTIONS.get(name.text)
        if known is None:
            self.fail(f"No function is called '{name.text}'{_like(name.text)}.", name)
        if not known.least <= len(args) <= known.most:
            self.fail(f"{name.text} takes {known.least} argument{'s' * (known.least != 1)}, not {len(args)}.", name)
        return Call(name.text, args, name.at)

    def load(self, name: Token) -> Expr:
        index: list[Expr] = []
        outside: Outside | Num | None = None
        while not self.taken("]"):
            if self.taken(";"):
                outside = self.outside()
                self.expect("]", "after what is read outside")
                break
            if index:
                self.comma_or("]", f"after an index of {name.text}")
            index.append(self.expression())
        if not index:
            self.fail(f"{name.text} names no index.", name)
        self.last_load = (name, self.position)
        return Load(name.text, tuple(index), outside, name.at)

    def outside(self) -> Outside | Num:
        token = self.token
        if token.text == "zero":
            self.next()
            return Num(0, token.at)
        if token.text in _OUTSIDE:
            return _OUTSIDE[self.next().text]
        value = self.expression()
        if not isinstance(value, Num):
            self.fail("Outside is read zero, clamp, wrap, reflect or a number.", token)
        return value

    def reduction(self, op: Token) -> Expr:
        accumulate = self.type() if self.taken(":") else ""
        if not self.taken("["):
            self.fail(f"{op.text} names the dimensions that it runs over, as in {op.text}[c] x[r, c].", op)
        ranges: list[Range] = []
        while not self.taken("]"):
            if ranges:
                self.comma_or("]", f"after a dimension of {op.text}")
            ranges.append(self.range())
        if not ranges:
            self.fail(f"{op.text} runs over nothing: name its dimensions, as in {op.text}[c] x[r, c].", op)
        return Reduce(op.text, tuple(ranges), self.expression(body_level(op.text)), accumulate, op.at)

    def range(self) -> Range:
        token = self.token
        first = self.expression(COMPARISON)
        lower: Expr | None = None
        if self.token.text in ("<", "<=") and (not isinstance(first, Name) or self._encloses()):
            lower = first if self.next().text == "<=" else one_more(first)
            token = self.token
            first = self.expression(COMPARISON)
        if not isinstance(first, Name):
            self.fail("A dimension is expected, as in sum[k], sum[j <= i] or sum[a <= k < b].", token)
        if self.token.text in ("<", "<="):
            closed = self.next().text == "<="
            return Range(first.name, lower, self.expression(COMPARISON), closed, token.at)
        if self.token.text in (">", ">=") and lower is None:
            sign, end = self.next().text, self.expression(COMPARISON)
            lower = end if sign == ">=" else one_more(end)
        return Range(first.name, lower, None, False, token.at)

    def _encloses(self) -> bool:
        """Whether the bound is followed by a name and another bound: `a <= k < b`."""
        return self.after().kind == "name" and self.after(2).text in ("<", "<=")


def one_more(node: Expr) -> Expr:
    """The expression plus 1."""
    return Num(node.value + 1) if isinstance(node, Num) else Call("+", (node, Num(1)), node.at)


def _like(name: str) -> str:
    close = difflib.get_close_matches(name, FUNCTIONS, 1)
    return f": perhaps {close[0]} is meant" if close else ""
