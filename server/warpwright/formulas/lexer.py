"""The text of a formula as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["number", "name", "sign", "end"]


class FormulaError(Exception):
    """What is wrong with a formula, in one sentence, at a place of its text.

    >>> print(FormulaError("y[i] = x[i] +", 13, "A value is missing."))
    line 1: A value is missing.
    y[i] = x[i] +
                 ^
    """

    def __init__(self, text: str, at: int, reason: str) -> None:
        self.text = text
        self.at = max(0, min(at, len(text)))
        self.reason = reason
        super().__init__(text, at, reason)

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, from 1."""
        return self.text.count("\n", 0, self.at) + 1, self.at - self.text.rfind("\n", 0, self.at)

    def __str__(self) -> str:
        line, column = self.position
        written = self.text.split("\n")[line - 1]
        return f"line {line}: {self.reason}\n{written}\n{' ' * (column - 1)}^"


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    at: int


MOST_CHARACTERS = 20_000
"""Of a formula; a page of them has 3,000."""

_TOKEN = re.compile(
    r"(?P<blank>(?:\s|\#[^\n]*)+)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)"
    r"|(?P<sign>\*\*|//|<<|>>|<=|>=|==|!=|\+=|\*=|[-+*/%&|^~()\[\]{},;:=<>'])",
    re.ASCII,
)


def tokens_of(text: str) -> list[Token]:
    """The tokens, the last of kind "end".

    >>> [token.text for token in tokens_of("y[i] += 2.5 * x[i]  # axpy")]
    ['y', '[', 'i', ']', '+=', '2.5', '*', 'x', '[', 'i', ']', '']
    """
    if len(text) > MOST_CHARACTERS:
        raise FormulaError(text, MOST_CHARACTERS, f"The formula is longer than {MOST_CHARACTERS:,} characters.")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise FormulaError(text, at, f"The character {text[at]!r} has no meaning here.")
        if found.lastgroup == "number":
            tokens.append(Token("number", found[0], at))
        elif found.lastgroup == "name":
            tokens.append(Token("name", found[0], at))
        elif found.lastgroup == "sign":
            tokens.append(Token("sign", found[0], at))
        at = found.end()
    tokens.append(Token("end", "", len(text.rstrip())))
    return tokens
