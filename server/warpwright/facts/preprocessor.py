"""Conditions of `#if` and `#elif` (C++ standard, [cpp.cond]): integer expressions in which macros are expanded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from warpwright.facts.steps import Steps

MAX_TOKENS = 20_000
"""Of one condition, with its macros expanded."""
MAX_NESTING = 200
"""Of parentheses and of macros in one another."""


class Macro(NamedTuple):
    """`parameters` is None for an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: str


class _UnreadableError(Exception):
    """The text is no integer constant expression."""


_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|\\\r?\n
    |(?P<has>__has_include(?:_next)?\s*\(\s*(?P<file><[^>\n]*>|"[^"\n]*")\s*\))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)(?P<suffix>[uUlLzZ]*)
    |(?P<char>'(?:\\.|[^'\\\n])')
    |(?P<op><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:(),])""",
    re.VERBOSE | re.DOTALL,
)


def _quotient(a: int, b: int) -> int:
    """C truncates towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(a: int, b: int) -> int:
    return a - _quotient(a, b) * b


_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "*": (10, lambda a, b: a * b), "/": (10, _quotient), "%": (10, _rest),
    "+": (9, lambda a, b: a + b), "-": (9, lambda a, b: a - b),
    "<<": (8, lambda a, b: a << b if 0 <= b < 64 else 0), ">>": (8, lambda a, b: a >> b if 0 <= b < 64 else 0),
    "<": (7, lambda a, b: a < b), "<=": (7, lambda a, b: a <= b), ">": (7, lambda a, b: a > b),
    ">=": (7, lambda a, b: a >= b), "==": (6, lambda a, b: a == b), "!=": (6, lambda a, b: a != b),
    "&": (5, lambda a, b: a & b), "^": (4, lambda a, b: a ^ b), "|": (3, lambda a, b: a | b),
    "&&": (2, lambda a, b: bool(a) and bool(b)), "||": (1, lambda a, b: bool(a) or bool(b)),
}  # fmt: skip
_WORDS = {"and": "&&", "or": "||", "not": "!", "compl": "~", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!="}
_SYSTEM = re.compile(r"<(?:(?:cuda|cub|thrust|nv|cooperative_groups)\b|[^/]*>)")


def condition(text: str, macros: Mapping[str, Macro], has_include: Callable[[str], bool], steps: Steps) -> int | None:
    """The value of a condition; a name that is no macro is 0. None for what is no integer constant expression, and
    where no steps are left: each token takes one.

    `has_include` is asked for names as they are written, `"a.h"` or `<a.h>`; the headers of the toolkit and of the
    language are taken to be there.

    >>> known = (Macro("V", None, "(A + 1)"), Macro("A", None, "800"), Macro("AT", ("x",), "V >= x"))
    >>> macros = {macro.name: macro for macro in known}
    >>> texts = ("AT(801) && !defined B", "defined(V) ? 1 : 1 / 0", "V >")
    >>> [condition(text, macros, lambda _: False, Steps(99)) for text in texts]
    [1, 1, None]
    """
    try:
        tokens = _tokens(text, has_include)
        return _Reader(_Expansion(macros, has_include, steps).of(tokens, frozenset())).whole()
    except (_UnreadableError, RecursionError):
        return None


def _tokens(text: str, has_include: Callable[[str], bool]) -> list[str]:
    """Names, numbers in decimal, and operators."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(found) > MAX_TOKENS:
            raise _UnreadableError
        at = match.end()
        if match["has"]:
            file = match["file"]
            found.append(str(int(has_include(file) or bool(_SYSTEM.match(file)))))
        elif match["number"]:
            found.append(_decimal(match["number"].replace("'", "")))
        elif match["char"]:
            escapes = {"\\n": 10, "\\t": 9, "\\0": 0, "\\r": 13}
            found.append(str(escapes.get(match["char"][1:-1], ord(match["char"][-2]))))
        elif match["name"] or match["op"]:
            found.append(_WORDS.get(match[0], match[0]))
    return found


@lru_cache(maxsize=4096)
def _plain_tokens(text: str) -> list[str]:
    """The tokens of a text that asks for no file: many conditions expand the same macros."""
    return _tokens(text, lambda _: False)


def _decimal(text: str) -> str:
    base = 16 if text[:2] in ("0x", "0X") else 2 if text[:2] in ("0b", "0B") else 8 if text[0] == "0" else 10
    try:
        return str(int(text[2:] if base in (2, 16) else text, base) & (1 << 64) - 1)
    except ValueError:
        raise _UnreadableError from None


class _Expansion:
    """Macros expanded as the preprocessor does it, up to so many tokens."""

    def __init__(self, macros: Mapping[str, Macro], has_include: Callable[[str], bool], steps: Steps) -> None:
        self.macros = macros
        self.steps = steps
        self.has_include = has_include
        self.left = MAX_TOKENS
        self.bodies: dict[str, list[str]] = {}

    def of(self, tokens: list[str], inside: frozenset[str]) -> list[str]:
        """`inside` are the macros that are being expanded: their names stand for themselves."""
        out: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            self.left -= 1
            if not self.steps.take() or self.left < 0 or len(inside) > MAX_NESTING:
                raise _UnreadableError
            if token == "defined":
                name, at = _operand(tokens, at)
                out.append(str(int(name in self.macros)))
                continue
            macro = self.macros.get(token) if token not in inside else None
            if macro is None:
                out.append(token)
            elif macro.parameters is None:
                out += self.of(self._body(macro), inside | {token})
            elif at < len(tokens) and tokens[at] == "(":
                arguments, at = _arguments(tokens, at)
                given = [self.of(argument, inside) for argument in arguments]
                names = dict(zip(macro.parameters, given, strict=False))
                body = [part for word in self._body(macro) for part in names.get(word, [word])]
                out += self.of(body, inside | {token})
            else:
                out.append(token)
        return out

    def _body(self, macro: Macro) -> list[str]:
        if macro.name not in self.bodies:
            asks = "__has_include" in macro.body
            self.bodies[macro.name] = _tokens(macro.body, self.has_include) if asks else _plain_tokens(macro.body)
        return self.bodies[macro.name]


def _operand(tokens: list[str], at: int) -> tuple[str, int]:
    """The name that `defined` asks for, with or without parentheses, and where the text goes on."""
    if tokens[at : at + 1] == ["("]:
        if tokens[at + 2 : at + 3] != [")"]:
            raise _UnreadableError
        return tokens[at + 1], at + 3
    if at >= len(tokens):
        raise _UnreadableError
    return tokens[at], at + 1


def _arguments(tokens: list[str], at: int) -> tuple[list[list[str]], int]:
    """The arguments in the parentheses that open at `at`, and where the text goes on behind them."""
    arguments: list[list[str]] = [[]]
    depth = 0
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return arguments, place + 1
        if token == "," and depth == 1:
            arguments.append([])
        elif depth > 1 or token != "(":
            arguments[-1].append(token)
    raise _UnreadableError


class _Reader:
    """Precedence climbing. What `&&`, `||` and `?:` do not need may divide by zero."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def whole(self) -> int:
        value = self._conditional()
        if self.at != len(self.tokens) or value is None:
            raise _UnreadableError
        return value

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _conditional(self) -> int | None:
        chosen = self._binary(1)
        if self._next() != "?":
            return chosen
        self.at += 1
        then = self._conditional()
        if self._next() != ":":
            raise _UnreadableError
        self.at += 1
        otherwise = self._conditional()
        return None if chosen is None else then if chosen else otherwise

    def _binary(self, least: int) -> int | None:
        left = self._unary()
        while (operator := _BINARY.get(self._next())) is not None and operator[0] >= least:
            name = self._next()
            self.at += 1
            right = self._binary(operator[0] + 1)
            left = _combined(name, left, right)
        return left

    def _unary(self) -> int | None:
        token = self._next()
        self.at += 1
        if token in ("!", "-", "+", "~", "("):
            self.depth += 1
            if self.depth > MAX_NESTING:
                raise _UnreadableError
            value = self._conditional() if token == "(" else self._unary()
            self.depth -= 1
            if token == "(":
                if self._next() != ")":
                    raise _UnreadableError
                self.at += 1
                return value
            return None if value is None else {"!": int(not value), "-": -value, "+": value, "~": ~value}[token]
        if token[:1].isdigit():
            return int(token)
        if token.isidentifier():
            while self._next() == "(":  # a function that is no macro: 0, as the compiler would refuse it
                _, self.at = _arguments(self.tokens, self.at)
            return int(token == "true")
        raise _UnreadableError


def _combined(operator: str, left: int | None, right: int | None) -> int | None:
    if operator == "&&" and 0 in (left, right):
        return 0
    if operator == "||" and (left or right):
        return 1
    if left is None or right is None:
        return None
    try:
        value = int(_BINARY[operator][1](left, right))
    except ZeroDivisionError:
        return None
    return (value + (1 << 63)) % (1 << 64) - (1 << 63) if abs(value) >> 64 else value
