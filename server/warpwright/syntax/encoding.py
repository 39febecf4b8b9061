"""Bytes as text and back: the one place where the bytes of users become strings, and strings bytes.

A file need not be UTF-8: nvcc takes any bytes in comments. In a string a byte that is not UTF-8 is a lone
surrogate, which `encoded` turns into that byte again, so that no edit changes a byte that it does not mean to change.
"""

from __future__ import annotations

import re
from typing import Any

_LONE = re.compile("[\ud800-\udfff]")


def decoded(data: bytes | bytearray) -> str:
    r"""The text of bytes, whatever they are.

    >>> decoded("é".encode("latin-1"))
    '\udce9'
    """
    return data.decode("utf-8", errors="surrogateescape")


def decoded_utf8(data: bytes) -> str:
    """The text of bytes that have to be UTF-8, without a mark at their start. Raises UnicodeDecodeError."""
    return data.decode("utf-8-sig")


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


def shown_bytes(data: bytes | bytearray) -> str:
    """As `shown`, of bytes, such as what a program wrote."""
    return shown(decoded(data))


def shown_in(value: Any) -> Any:
    """A JSON value with each string of it as `shown`: half of a surrogate pair is no JSON that all readers take.

    >>> shown_in({"a": ["\\udce9", 1]})
    {'a': ['\ufffd', 1]}
    """
    match value:
        case str():
            return shown(value)
        case dict():
            return {shown_in(key): shown_in(each) for key, each in value.items()}
        case list() | tuple():
            return [shown_in(each) for each in value]
        case _:
            return value


def units(text: str) -> int:
    """How many units of UTF-16 a text takes.

    >>> units("é😀x")
    4
    """
    return len(text) + sum(character > "\uffff" for character in text)


def of_units(text: str, count: int) -> str:
    """The start of a text that takes at most so many units of UTF-16, or ends in the middle of a character there.

    >>> of_units("😀x", 2), of_units("😀x", 1)
    ('😀', '')
    """
    at = 0
    while at < len(text) and count > 0:
        count -= 1 + (text[at] > "\uffff")
        at += count >= 0
    return text[:at]


def invalid_utf8_offset(data: bytes) -> int | None:
    """Byte offset of the first byte that is not UTF-8, or None."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None
