"""The names of files as the compiler writes them into PTX and line tables."""

from __future__ import annotations

import re

from warpwright.syntax.encoding import decoded, encoded

_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


def unescaped(path: str) -> str:
    r"""A file's name as the system has it: nvcc writes each byte that is not ASCII in octal.

    >>> unescaped(r"/home/caf\303\251/a\"b.cu")
    '/home/café/a"b.cu'
    """
    raw = _ESCAPE.sub(lambda m: bytes([int(m[1], 8) & 255]) if len(m[1]) == 3 else m[1], encoded(path))
    return decoded(raw)
