"""Text that is put into a file, as the file is written: the ends of its lines, and what it indents by."""

from __future__ import annotations

import re
from collections import Counter

from warpwright.syntax.source import Source

_OURS = "    "
_BEHIND_BRACE = re.compile(r"^([ \t]*)[^\n]*\{[ \t]*\r?\n(?:[ \t]*\r?\n)*([ \t]+)\S", re.MULTILINE)
_INDENT = re.compile(rf"^(?:{_OURS})+", re.MULTILINE)


def as_lines(source: Source, at: int, text: str) -> str:
    """A text of ours, indented by four blanks, as whole lines at a byte offset; behind the end of a line they begin
    with the end of it."""
    before = "" if at == 0 or source.data[at - 1 : at] == b"\n" else "\n"
    return in_style(source, f"{before}{text.rstrip(chr(10))}\n")


def in_style(source: Source, text: str) -> str:
    """The same text with the file's indentation and ends of lines.

    >>> in_style(Source("a.cu", b"void f() {\\r\\n\\tg();\\r\\n}\\r\\n"), "if (a) {\\n    b();\\n}")
    'if (a) {\\r\\n\\tb();\\r\\n}'
    """
    unit = indentation(source.text())
    if unit != _OURS:
        text = _INDENT.sub(lambda found: unit * (len(found[0]) // len(_OURS)), text)
    return text.replace("\n", "\r\n") if b"\r\n" in source.data else text


def indentation(text: str) -> str:
    """What most first lines of a block are indented by beyond the line that opens it; four blanks where none says.

    >>> indentation("void f() {\\n  if (a) {\\n    b();\\n  }\\n}")
    '  '
    """
    steps = Counter(
        inner[len(outer) :]
        for outer, inner in _BEHIND_BRACE.findall(text)
        if inner.startswith(outer) and inner != outer
    )
    return steps.most_common(1)[0][0] if steps else _OURS
