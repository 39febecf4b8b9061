"""The element types of kernel arguments: their size, and how the harness holds them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ElementType:
    """`scalar` names the component (float32, int32, ...), of which an element has `components`, as float4 has four."""

    scalar: str
    scalar_bytes: int
    components: int = 1

    @property
    def bytes(self) -> int:
        return self.scalar_bytes * self.components

    @property
    def is_float(self) -> bool:
        return "float" in self.scalar


_SCALARS = {
    "float": ("float32", 4), "double": ("float64", 8), "__half": ("float16", 2), "half": ("float16", 2),
    "__nv_bfloat16": ("bfloat16", 2), "nv_bfloat16": ("bfloat16", 2), "bool": ("bool", 1),
    "char": ("int8", 1), "signed char": ("int8", 1), "int8_t": ("int8", 1),
    "unsigned char": ("uint8", 1), "uint8_t": ("uint8", 1), "uchar": ("uint8", 1), "byte": ("uint8", 1),
    "short": ("int16", 2), "int16_t": ("int16", 2), "unsigned short": ("uint16", 2), "uint16_t": ("uint16", 2),
    "int": ("int32", 4), "signed": ("int32", 4), "int32_t": ("int32", 4),
    "unsigned int": ("uint32", 4), "unsigned": ("uint32", 4), "uint": ("uint32", 4), "uint32_t": ("uint32", 4),
    "long": ("int64", 8), "long int": ("int64", 8), "long long": ("int64", 8), "long long int": ("int64", 8),
    "int64_t": ("int64", 8), "ptrdiff_t": ("int64", 8), "ssize_t": ("int64", 8),
    "unsigned long": ("uint64", 8), "unsigned long long": ("uint64", 8), "uint64_t": ("uint64", 8),
    "size_t": ("uint64", 8), "ulong": ("uint64", 8), "unsigned long int": ("uint64", 8),
    "unsigned long long int": ("uint64", 8), "uintptr_t": ("uint64", 8), "intptr_t": ("int64", 8),
}  # fmt: skip
_VECTORS = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short", "int": "int",
    "uint": "unsigned int", "longlong": "long long", "ulonglong": "unsigned long long", "long": "long",
    "ulong": "unsigned long", "float": "float", "double": "double",
}  # fmt: skip
_PAIRS = {"__half2": "__half", "half2": "__half", "__nv_bfloat162": "__nv_bfloat16", "nv_bfloat162": "__nv_bfloat16"}


def element_type(text: str) -> ElementType | None:
    """The type that a C++ type's text names, without its qualifiers, `*` and `&`; None where it is not a known one.

    >>> element_type("const float *__restrict__")
    ElementType(scalar='float32', scalar_bytes=4, components=1)
    >>> element_type("std::uint8_t"), element_type("float4").bytes, element_type("struct Params")
    (ElementType(scalar='uint8', scalar_bytes=1, components=1), 16, None)
    >>> element_type("double[5]")
    ElementType(scalar='float64', scalar_bytes=8, components=5)
    """
    if match := re.fullmatch(r"(.+)\[(\d+)\]", text.strip()):
        one = element_type(match[1])
        count = int(match[2])
        return ElementType(one.scalar, one.scalar_bytes, one.components * count) if one and count else None
    plain = re.sub(r"\b(const|volatile|__restrict__|__restrict|restrict|std|cuda)\b|[*&]|::", " ", text)
    name = " ".join(plain.split())
    if name in _SCALARS:
        return ElementType(*_SCALARS[name])
    if name in _PAIRS:
        return ElementType(*_SCALARS[_PAIRS[name]], 2)
    match = re.fullmatch(r"([a-z]+)([1-4])", name)
    if match and match[1] in _VECTORS:
        return ElementType(*_SCALARS[_VECTORS[match[1]]], int(match[2]))
    return None
