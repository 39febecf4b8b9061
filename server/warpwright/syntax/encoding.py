"""Bytes as text and back: the one place where the bytes of users become strings, and strings bytes.

A file need not be UTF-8: nvcc takes any bytes in comments and strings. In a string a byte that is not UTF-8 is a lone
surrogate, which `encoded` turns into that byte again, so that no edit changes a byte that it does not mean to change.
"""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")


def decoded(data: bytes) -> str:
    r"""The text of bytes, whatever they are.

    >>> decoded("é".encode("latin-1"))
    '\udce9'
    """
    return data.decode("utf-8", errors="surrogateescape")


def encoded(text: str) -> bytes:
    r"""The bytes of a text, those again that `decoded` made it of; other lone surrogates, which no file holds, as
    U+FFFD.

    >>> encoded("\udce9"), encoded("\ud800")
    (b'\xe9', b'\xef\xbf\xbd')
    """
    try:
        return text.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text).encode("utf-8", errors="surrogateescape")


def shown(text: str) -> str:
    """A text as it is shown and sent to who takes UTF-8 alone: U+FFFD for each byte that is none.

    >>> shown(decoded(b"caf\\xe9"))
    'caf\ufffd'
    """
    return _LONE.sub("\ufffd", text) if not text.isascii() else text


def shown_bytes(data: bytes) -> str:
    """As `shown`, of bytes, such as what a program wrote."""
    return shown(decoded(data))
