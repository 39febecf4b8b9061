"""A text without what its comments and literals say, of the same length, so that all offsets hold.

A search in a user's text that decides something is a search in this: a comment that tells of `volatile` is no volatile
memory. The lexer is C++'s, so that it holds for text that no grammar takes; what gcc does where the standard leaves
it open is done here (an unpaired quote takes the rest of its line).
"""

from __future__ import annotations

import re
from functools import lru_cache

from warpwright.syntax.encoding import decoded, encoded

_SPLICE = rb"\\[ \t]*\r?\n"
_STRING = rb'"(?:' + _SPLICE + rb'|\\.|[^"\\\r\n])*"?'
_CHARACTER = rb"'(?:" + _SPLICE + rb"|\\.|[^'\\\r\n])*'?"
_PIECES = re.compile(
    rb"(?P<comment>//(?:" + _SPLICE + rb"|[^\r\n])*|/\*.*?(?:\*/|\Z))"
    rb"|(?P<file>(?:^[ \t]*\#[ \t]*(?:include|include_next|import|embed)|__has_(?:include|include_next|embed)[ \t]*\()"
    rb"[ \t]*(?:<[^>\r\n]*>|\"[^\"\r\n]*\"))"
    rb"|(?P<message>^[ \t]*\#[ \t]*(?:error|warning)\b(?:" + _STRING + rb"|" + _CHARACTER + rb"|" + _SPLICE
    + rb"|/(?![*/])|[^\r\n/\"'])*)"
    rb"|(?P<number>(?<![\w.])\.?\d[\w.]*+(?:'[\w.]++)++)"
    rb"|\b(?P<raw>(?:u8|[uUL])?R\"(?P<fence>[^ ()\\\t\v\f\r\n]{0,16})\(.*?(?:\)(?P=fence)\"|\Z))"
    rb"|(?P<literal>" + _STRING + rb"|" + _CHARACTER + rb")",
    re.DOTALL | re.MULTILINE,
)  # fmt: skip
_BLANK = bytes(byte if byte in b"\r\n" else 0x20 for byte in range(256))
_APART = bytes(byte if byte in b"\r\n" or byte > 0x7E else 0xFF if byte == 0x20 else byte + 0x80 for byte in range(256))
"""Letters and signs as bytes that are none in ASCII; a blank as one that is no white space either."""


@lru_cache(maxsize=8)
def code_of(data: bytes) -> bytes:
    r"""The bytes of a program with comments as blanks, and the characters in literals as ones that no search looks
    for. Different literals stay different, so that two pieces of code that read the same are the same. Line ends,
    quotes and the names of included files stay.

    >>> code_of(b"a = 1; // volatile\nb = 2;")
    b'a = 1;            \nb = 2;'
    >>> code_of(b"f('{', 1'000)")
    b"f('\xfb', 1'000)"
    >>> code_of(b'#include "a//b.h"')
    b'#include "a//b.h"'
    """
    if b"/" not in data and b'"' not in data and b"'" not in data and b"#" not in data:
        return data
    return _PIECES.sub(_without_words, data)


def code_in(text: str) -> str:
    """As `code_of`, of a piece of a program as text, such as what a macro stands for."""
    return decoded(code_of(encoded(text)))


def without_comments(data: bytes) -> bytes:
    """The bytes of a program with comments as blanks and everything else as it stands: for what is read further.

    >>> without_comments(b'#define URL "http://a" // here')
    b'#define URL "http://a"        '
    """
    if b"//" not in data and b"/*" not in data:
        return data
    return _PIECES.sub(lambda match: _blank(match[0]) if match.lastgroup == "comment" else match[0], data)


def plain(text: str) -> str:
    """As `without_comments`, of a piece of a program as text."""
    return decoded(without_comments(encoded(text)))


def comments_of(data: bytes) -> list[tuple[int, int]]:
    """Where the comments of a program start and end, in text order.

    >>> comments_of(b"a /* 1 */ + 2; // 3")
    [(2, 9), (15, 19)]
    """
    return [match.span() for match in _PIECES.finditer(data) if match.lastgroup == "comment"]


def _without_words(match: re.Match[bytes]) -> bytes:
    text = match[0]
    match match.lastgroup:
        case "comment" | "message":
            return _blank(text)
        case "file" | "number":
            return text
        case _:
            start = re.search(rb"[\"']", text)
            first = start.end() if start is not None else 0
            last = len(text) - (len(text) > first and text[-1:] == text[first - 1 : first])
            return text[:first] + text[first:last].translate(_APART) + text[last:]


def _blank(text: bytes) -> bytes:
    return text.translate(_BLANK)
