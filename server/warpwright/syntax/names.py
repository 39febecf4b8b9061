"""Names as C++ spells them."""

from __future__ import annotations


def unqualified(name: str) -> str:
    """The identifier in a qualified name with template arguments: what the function is called where it is defined.

    >>> unqualified("ns::tk<float, -3, ns::A>")
    'tk'
    """
    return name.split("<", 1)[0].rsplit("::", 1)[-1].strip()
