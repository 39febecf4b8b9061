"""A text as the grammar can read it, of the same length, so that all offsets hold.

The grammar knows no macros and not all of CUDA's attributes. What it would stumble over is replaced in the bytes that
the parser sees, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from warpwright.syntax.code import code_of

_ATTRIBUTES = re.compile(rb"\b__(?:align|builtin_align|cluster_dims|block_size|maxnreg)__\s*\([^()\n]*\)")
_HAS_INCLUDE = re.compile(rb"(?<=__has_include)(\s*\(\s*)(<[^>\n]*>|\"[^\"\n]*\")")
_ARGUMENTS = rb"\((?:[^(){};]|\([^(){};]*\))*\)"
_ONLY_A_MACRO = re.compile(rb"\)\s*\{\s*[A-Za-z_]\w*(?:\s*" + _ARGUMENTS + rb")?(\s+)\}")
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^()\n]*\))?((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_DIRECTIVE = rb"^[ \t]*#(?:\\\r?\n|[^\n])*"
_BLANKS = re.compile(rb"\s*")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_HEAD_START = re.compile(rb"\s*(?:_Pragma\s*\([^()]*\)\s*)?(?:for|if|while)\s*\(")
_LOOPS = rb"[A-Z]\w*KERNEL_LOOP\w*"
"""Loops over the elements of a grid by the name that Caffe gave them, which many headers define."""
_IF = b"if(0)"
_FOLLOWED = rb"(\s+)(?=[A-Za-z_{}#])"


@lru_cache(maxsize=8)
def readable(data: bytes) -> bytes:
    r"""The bytes that the parser is given.

    Attributes that the grammar does not know, `struct __align__(16) S` and `void __cluster_dims__(2) k()`, are blanks;
    the file in `__has_include("a.h")` is a name. Behind a macro that stands for whole statements, or is all that a
    body holds, a `;` takes the place of a blank, else what follows would be read as a part of it. A macro that stands
    for the head of a loop is the head of an `if`. The latest texts are kept: an edit compares one with the next.

    >>> readable(b"struct __align__(16) S {};")
    b'struct               S {};'
    >>> readable(b"void k() { BODY }")
    b'void k() { BODY;}'
    >>> readable(b"#define ADD(x) n += x;\nvoid f() { ADD(1) ADD(2) int m; }")
    b'#define ADD(x) n += x;\nvoid f() { ADD(1);ADD(2);int m; }'
    """
    data = with_line_feeds(data)
    if any(word in data for word in (b"align__", b"_dims__", b"block_size__", b"maxnreg__")):
        data = _replaced(data, _ATTRIBUTES, lambda match: b" " * len(match[0]))
    if b"__has_include" in data:
        data = _replaced(data, _HAS_INCLUDE, lambda match: match[1] + b"_" * len(match[2]))
    data = _with_ends(data, _ONLY_A_MACRO)
    defined = {match[1]: match[2] for match in _defines(code_of(data))}
    data = terminated(data, [name for name, body in defined.items() if ends_statement(body)])
    return _with_heads(data, [name for name, body in defined.items() if is_head(body)])


def with_line_feeds(data: bytes) -> bytes:
    """The text with a line feed for each return that ends a line alone."""
    return _LONE_RETURN.sub(b"\n", data) if b"\r" in data else data


def _replaced(data: bytes, what: re.Pattern[bytes], by: Callable[[re.Match[bytes]], bytes]) -> bytes:
    """The text with what stands in its code replaced by as many bytes."""
    out = bytearray(data)
    for match in what.finditer(code_of(data)):
        out[match.start() : match.end()] = by(match)
    return bytes(out)


def _defines(code: bytes) -> Iterator[re.Match[bytes]]:
    """The definitions of macros; found by the word, which takes a tenth of the time of trying every line."""
    at = code.find(b"define")
    while at >= 0:
        match = _DEFINE.match(code, code.rfind(b"\n", 0, at) + 1)
        if match is not None:
            yield match
        at = code.find(b"define", match.end() if match is not None else at + 1)


def ends_statement(replacement: bytes) -> bool:
    """Whether what a macro stands for ends as a statement does, so that its uses need no `;`.

    >>> ends_statement(b"x += 1;"), ends_statement(b"{ f(); g(); }"), ends_statement(b"{0, 0}")
    (True, True, False)
    """
    body = code_of(replacement).replace(b"\\", b" ").strip()
    return body.endswith(b";") or (body.endswith(b"}") and b";" in body)


def terminated(data: bytes, names: Sequence[bytes]) -> bytes:
    """The text with a `;` for a blank behind each use of the macros of these names, where a statement may follow.

    >>> terminated(b"ADD(1) ADD(2); int n = ADD (3) + 1;", [b"ADD"])
    b'ADD(1);ADD(2); int n = ADD (3) + 1;'
    """
    if not names:
        return data
    uses = re.compile(
        _DIRECTIVE + rb"|\b(?:" + b"|".join(map(re.escape, names)) + rb")\b(?:[ \t]*" + _ARGUMENTS + rb")?" + _FOLLOWED,
        re.DOTALL | re.MULTILINE,
    )
    return _with_ends(data, uses)


def _with_ends(data: bytes, uses: re.Pattern[bytes]) -> bytes:
    """The text with a `;` for one of the blanks that each use has as its first group."""
    out = bytearray(data)
    for match in uses.finditer(code_of(data)):
        at = _blank_in(data, *match.span(1)) if match[1] else None
        if at is not None:
            out[at] = ord(";")
    return bytes(out)


def _blank_in(data: bytes, start: int, end: int) -> int | None:
    """Which of the blanks of the code becomes a `;`: one outside of comments, and that ends no line, where there is
    one."""
    ahead = _BLANKS.match(data, start, end)
    blanks = ahead[0] if ahead is not None else b""
    if blanks:
        return start + next((i for i, c in enumerate(blanks) if c in b" \t"), 0)
    return end - 1 if data[end - 1] in b" \t" else None


def is_head(replacement: bytes) -> bool:
    """Whether a macro stands for the head of loops and conditions, whose body follows its use.

    >>> is_head(b"for (int i = 0; i < n; i++) if (on[i])"), is_head(b"if (f(x)) g(x)")
    (True, False)
    """
    rest = code_of(replacement).replace(b"\\", b" ")
    while True:
        start = _HEAD_START.match(rest)
        if start is None:
            return False
        depth, at = 1, start.end()
        while depth and at < len(rest):
            depth += (rest[at] == ord("(")) - (rest[at] == ord(")"))
            at += 1
        rest = rest[at:]
        if not rest.strip():
            return not depth


def _with_heads(data: bytes, names: Sequence[bytes]) -> bytes:
    """The text with `if(0)` and blanks for each use of macros that are heads."""
    if not names and b"KERNEL_LOOP" not in data:
        return data
    used = b"|".join([*map(re.escape, names), _LOOPS])
    uses = re.compile(_DIRECTIVE + rb"|(\b(?:" + used + rb")\b(?:\s*" + _ARGUMENTS + rb")?)", re.DOTALL | re.MULTILINE)

    def head(match: re.Match[bytes]) -> bytes:
        if not match[1] or len(match[0]) < len(_IF):
            return data[match.start() : match.end()]
        return _IF + re.sub(rb"[^\n]", b" ", match[0][len(_IF) :])

    return _replaced(data, uses, head)
