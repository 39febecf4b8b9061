"""The names that a file gives to element types: `using real = float;`, `typedef __half half_t;`, `#define T float`."""

from __future__ import annotations

import re

_NAMED = re.compile(
    r"""
      \busing\s+(?P<used>[A-Za-z_]\w*)\s*=\s*(?P<as_used>[\w:]+(?:\s+\w+)*)\s*;
    | \btypedef\s+(?P<as_typed>[\w:]+(?:\s+\w+)*?)\s+(?P<typed>[A-Za-z_]\w*)\s*;
    | ^[ \t]*\#[ \t]*define[ \t]+(?P<defined>[A-Za-z_]\w*)[ \t]+(?P<as_defined>[A-Za-z_][\w:]*(?:[ ]\w+)*)[ \t]*\r?$
    """,
    re.MULTILINE | re.VERBOSE,
)
_MOST_STEPS = 4


def own_types(text: str) -> dict[str, str]:
    """What each name stands for; nothing of one that is given twice.

    >>> own_types("using real = float;\\ntypedef unsigned int uint_t;\\n#define T real\\nusing real = double;")
    {'uint_t': 'unsigned int', 'T': 'real'}
    """
    found: dict[str, str] = {}
    twice: set[str] = set()
    for each in _NAMED.finditer(text):
        name = each["used"] or each["typed"] or each["defined"]
        if name in found:
            twice.add(name)
        found[name] = each["as_used"] or each["as_typed"] or each["as_defined"]
    return {name: type for name, type in found.items() if name not in twice}


def with_types(text: str, named: dict[str, str]) -> str:
    """A text with each name as what it stands for.

    >>> with_types("const T* x, int n", {"T": "real", "real": "float"})
    'const float* x, int n'
    """
    for _ in range(_MOST_STEPS):
        before = text
        for name, type in named.items():
            text = re.sub(rf"\b{name}\b", type, text)
        if text == before:
            break
    return text
