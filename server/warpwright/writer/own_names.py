"""Names of a written text beside those of the formula: what both have gets another one in the text."""

from __future__ import annotations

import re
from collections.abc import Container

_PARTS = re.compile(r'"[^"]*"|//[^\n]*|\$\{?\w+\}?|\.\w+|[A-Za-z_]\w*')


def own_name(name: str, taken: Container[str]) -> str:
    """The name, or one like it that is free.

    >>> own_name("row", {"row"})
    'row_'
    """
    while name in taken:
        name += "_"
    return name


def with_own_names(template: str, taken: Container[str]) -> str:
    """A template whose own names are free; its placeholders, fields, strings and comments are left.

    >>> with_own_names("const int row = $row;  // row", {"row"})
    'const int row_ = $row;  // row'
    """

    def change(found: re.Match[str]) -> str:
        text = found.group()
        return text if text[0] in '"/$.' else own_name(text, taken)

    return _PARTS.sub(change, template)
