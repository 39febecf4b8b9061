"""Names as C++ spells them."""

from __future__ import annotations

from collections.abc import Sequence


def unqualified(name: str) -> str:
    """The identifier in a qualified name with template arguments: what the function is called where it is defined.

    >>> unqualified("ns::tk<float, -3, ns::A>")
    'tk'
    """
    return name.split("<", 1)[0].rsplit("::", 1)[-1].strip()


def renamed(name: str, old: str, new: str) -> str:
    """A name whose identifier is `old` with `new` there; any other as it is.

    >>> renamed("ns::tk<float, 3>", "tk", "tk_tuned"), renamed("tk2<tk>", "tk", "tk_tuned")
    ('ns::tk_tuned<float, 3>', 'tk2<tk>')
    """
    before, bracket, rest = name.partition("<")
    space, colons, own = before.rpartition("::")
    return f"{space}{colons}{new}{bracket}{rest}" if own.strip() == old else name


def qualified(name: str) -> str:
    """A name with its namespaces and without template arguments.

    >>> qualified("ns::tk<float, -3, ns::A>")
    'ns::tk'
    """
    return name.split("<", 1)[0].strip()


def template_arguments(name: str) -> tuple[str, ...]:
    """What stands between the angle brackets of a name, cut at the commas outside of any brackets; () without any.

    >>> template_arguments("ns::tk<float, pair<int, 3>, f(1, 2)>")
    ('float', 'pair<int, 3>', 'f(1, 2)')
    >>> template_arguments("scale")
    ()
    """
    inside = name.partition("<")[2].rpartition(">")[0]
    parts, depth, start = [], 0, 0
    for at, character in enumerate(inside):
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append(inside[start:at])
            start = at + 1
    return tuple(part.strip() for part in (*parts, inside[start:])) if inside else ()


def has_arguments(name: str, written: Sequence[str]) -> bool:
    """Whether a demangled name's template arguments begin as they are written at a launch.

    >>> has_arguments("sum<float, 256u>", ["float", "256"]), has_arguments("sum<float, 128>", ["float", "N"])
    (True, False)
    >>> has_arguments("fill<unsigned int, long>", ["std::uint32_t", "int64_t"])
    True
    """
    had = [_plain(argument) for argument in template_arguments(name)]
    return bool(written) and had[: len(written)] == [_plain(argument) for argument in written]


_SPELLED = {
    "int8_t": "signed char", "uint8_t": "unsigned char", "uchar": "unsigned char",
    "int16_t": "short", "uint16_t": "unsigned short", "ushort": "unsigned short",
    "int32_t": "int", "uint32_t": "unsigned int", "uint": "unsigned int", "unsigned": "unsigned int",
    "int64_t": "long", "long int": "long", "uint64_t": "unsigned long", "size_t": "unsigned long",
    "unsigned long int": "unsigned long", "long long int": "long long", "unsigned long long int": "unsigned long long",
    "half": "__half", "half2": "__half2", "nv_bfloat16": "__nv_bfloat16",
}  # fmt: skip
"""Types as they are written on 64-bit Linux, where kernels are compiled, by the names that a compiler gives them."""


def _plain(argument: str) -> str:
    written = " ".join(argument.split()).removeprefix("std::")
    return "".join(_SPELLED.get(written, written).split()).rstrip("uUlL")
