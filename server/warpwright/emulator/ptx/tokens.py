"""PTX text cut into tokens, and a cursor over them that says in one sentence what is wrong and where.

Source: PTX ISA 9.0, section 4.2 "Comments", 4.4 "Identifiers", 4.5 "Constants".
"""

from __future__ import annotations

import re

_NUMBER = r"""
    -?(?: 0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
        | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \d+U? )(?!\w)
    """
_TOKEN = re.compile(
    rf"""
    [%$_A-Za-z][\w$]*(?:::\w+)*(?:\.[\w$]+(?:::\w+)*)*   # a name, `%tid.x`, an opcode with its modifiers
    | \.[A-Za-z_]\w*(?:::\w+)*                           # a directive or a type
    | {_NUMBER}
    | "(?:[^"\\]|\\.)*"?                                # one that is not closed goes to the end of its line
    | //.*
    | \w+                                                # no token of PTX, taken whole
    | \S
    """,
    re.VERBOSE | re.ASCII,
)
_IS_NUMBER = re.compile(_NUMBER, re.VERBOSE | re.ASCII).fullmatch
_BLOCK_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


class PtxError(ValueError):
    """PTX that cannot be read. `row` is the 1-based line of the PTX text, `sentence` says what is wrong with it."""

    def __init__(self, row: int, sentence: str) -> None:
        super().__init__(f"Line {row} of the PTX: {sentence}")
        self.row = row
        self.sentence = sentence


class Cursor:
    """A position in the tokens of one text. The last token is "", which stands for the end of the text.

    `tokens` and `at` are public for the loop over instructions, which is too hot for a call for each token.
    """

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        self.rows: list[int] = []
        self.at = 0
        find = _TOKEN.findall
        row = 0
        for row, line in enumerate(_without_block_comments(text).split("\n"), start=1):
            found: list[str] = find(line)
            if "//" in line:
                found = [token for token in found if not token.startswith("//")]
            if found:
                self.tokens += found
                self.rows += [row] * len(found)
        self.tokens.append("")
        self.rows.append(self.rows[-1] if self.rows else row)

    @property
    def row(self) -> int:
        return self.rows[self.at]

    def peek(self) -> str:
        return self.tokens[self.at]

    def next(self) -> str:
        """The token here, which is stepped over. Raises PtxError at the end of the text."""
        token = self.tokens[self.at]
        if not token:
            raise self.unexpected("more text")
        self.at += 1
        return token

    def take(self, token: str) -> bool:
        """Whether the token here is `token`, which is then stepped over."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.unexpected(f"`{token}`")

    def name(self, what: str) -> str:
        """An identifier, such as a symbol or a register."""
        token = self.tokens[self.at]
        if not is_name(token):
            raise self.unexpected(what)
        self.at += 1
        return token

    def whole(self, what: str, most: int = 2**64 - 1) -> int:
        """A whole number from 0 to `most`."""
        token = self.tokens[self.at]
        if not is_number(token) or token.startswith("-") or is_float(token):
            raise self.unexpected(what)
        value = whole_number(token)
        if value is None or value > most:
            raise self.error(f"{what} was expected, and `{token[:40]}` is too large for one.")
        self.at += 1
        return value

    def error(self, sentence: str) -> PtxError:
        return PtxError(self.row, sentence)

    def unexpected(self, expected: str) -> PtxError:
        """That `expected` is not what stands here."""
        token = self.tokens[self.at]
        if not token:
            return self.error(f"the text ends where {expected} was expected; it seems to be cut off.")
        return self.error(f"{expected} was expected, not `{token[:40]}`.")


def is_name(token: str) -> bool:
    """Whether a token is an identifier or an opcode.

    >>> is_name("%r1"), is_name("_Z1kPf"), is_name("4"), is_name(".reg"), is_name("")
    (True, True, False, False, False)
    """
    return token.isascii() and (token[:1].isalpha() or (token[:1] in ("%", "$", "_") and token != "%"))


def is_number(token: str) -> bool:
    """Whether a token is a constant, with its sign if it has one.

    >>> is_number("-0x1F"), is_number("0f3F800000"), is_number("0f3F"), is_number("")
    (True, True, False, False)
    """
    return _IS_NUMBER(token) is not None


def is_float(token: str) -> bool:
    """Whether a number's token is a floating-point constant.

    >>> is_float("0f3F800000"), is_float("-1.5"), is_float("0xFD"), is_float("12")
    (True, True, False, False)
    """
    digits = token.lstrip("-")
    kind = digits[1:2].lower()
    return kind in ("f", "d") or (kind not in ("x", "b") and ("." in digits or "e" in digits.lower()))


def whole_number(token: str) -> int | None:
    """The value of a whole number in any of PTX's bases; None for one too long for 64 bits, and no octal number.

    >>> whole_number("0xFFU"), whole_number("-017"), whole_number("0b101"), whole_number("42U")
    (255, -15, 5, 42)
    """
    if len(token) > 70:
        return None
    digits = token.removesuffix("U")
    if digits.lstrip("-").startswith("0") and digits.lstrip("-").isdigit():
        base = 8
    else:
        base = {"x": 16, "b": 2}.get(digits.lstrip("-")[1:2].lower(), 10)
    try:
        value = int(digits, base)
    except ValueError:
        return None
    return value if -(2**63) <= value < 2**64 else None


def _without_block_comments(text: str) -> str:
    """The text with each `/* */` replaced by its line breaks.

    >>> _without_block_comments('a /* b\\nc */ d // /* e\\n"/* f"')
    'a  \\n d // /* e\\n"/* f"'
    """
    if "/*" not in text:
        return text

    def keep(match: re.Match[str]) -> str:
        whole = match[0]
        if not whole.startswith("/*"):
            return whole
        if len(whole) < 4 or not whole.endswith("*/"):
            raise PtxError(text.count("\n", 0, match.start()) + 1, "a comment `/*` is not closed; the text is cut off.")
        return " " + "\n" * whole.count("\n")

    return _BLOCK_COMMENT.sub(keep, text)
