"""The element types of tensors and scalars, and which type an operation gives.

A type of less than 32 bits of floating point is a way to store numbers: what is computed with it is computed in f32,
and rounded where it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "integer", "float", "complex"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type. `bits` are those of storage; `digits` those of the significand of a floating-point type, with
    the leading one that is not stored; `largest` is the largest finite value of a floating-point type."""

    name: str
    kind: Kind
    bits: int
    signed: bool = True
    digits: int = 0
    largest: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next larger value; of a complex type, that of its parts.

        >>> TYPES["f32"].epsilon == 2.0**-23
        True
        """
        return 2.0 ** (1 - self.digits) if self.digits else 0.0

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type.

        >>> TYPES["i8"].bounds, TYPES["u8"].bounds
        ((-128, 127), (0, 255))
        """
        if self.kind == "bool":
            return 0, 1
        bits = self.bits - self.signed
        return (-(1 << bits) if self.signed else 0), (1 << bits) - 1


TYPES = {
    each.name: each
    for each in (
        ElementType("f64", "float", 64, digits=53, largest=1.7976931348623157e308),
        ElementType("f32", "float", 32, digits=24, largest=3.4028234663852886e38),
        ElementType("f16", "float", 16, digits=11, largest=65504.0),
        ElementType("bf16", "float", 16, digits=8, largest=3.3895313892515355e38),
        ElementType("f8e4m3", "float", 8, digits=4, largest=448.0),
        ElementType("f8e5m2", "float", 8, digits=3, largest=57344.0),
        *(ElementType(f"i{bits}", "integer", bits) for bits in (8, 16, 32, 64)),
        *(ElementType(f"u{bits}", "integer", bits, signed=False) for bits in (8, 16, 32, 64)),
        ElementType("bool", "bool", 8, signed=False),
        ElementType("c64", "complex", 64, digits=24, largest=3.4028234663852886e38),
        ElementType("c128", "complex", 128, digits=53, largest=1.7976931348623157e308),
    )
}
"""Every type that a formula can name."""

OTHER_NAMES = {
    "double": "f64", "float64": "f64", "float": "f32", "float32": "f32", "half": "f16", "float16": "f16", "bfloat16":
    "bf16", "fp8": "f8e4m3", "e4m3": "f8e4m3", "e5m2": "f8e5m2", "int8": "i8", "int16": "i16", "int32": "i32", "int":
    "i32", "int64": "i64", "long": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
"""Names of C, NumPy and torch that are read as one of ours."""


def type_named(name: str) -> ElementType | None:
    """The type of that name, ours or another's.

    >>> type_named("half").name
    'f16'
    """
    return TYPES.get(OTHER_NAMES.get(name, name))


def computed(kind: ElementType) -> ElementType:
    """The type in which is computed with values of `kind`.

    >>> computed(TYPES["bf16"]).name, computed(TYPES["i8"]).name
    ('f32', 'i32')
    """
    if kind.is_float and kind.bits < 32:
        return TYPES["f32"]
    if kind.kind == "integer" and kind.bits < 32:
        return TYPES["i32"]
    return kind


KIND_RANK = {"bool": 0, "integer": 1, "float": 2, "complex": 3}


def promoted(one: ElementType, other: ElementType) -> ElementType:
    """The type of an operation on both, as torch has it: the higher kind, and of one kind the type that holds both.

    >>> promoted(TYPES["f16"], TYPES["bf16"]).name, promoted(TYPES["i64"], TYPES["f16"]).name
    ('f32', 'f16')
    >>> promoted(TYPES["u8"], TYPES["i8"]).name, promoted(TYPES["f64"], TYPES["c64"]).name
    ('i16', 'c128')
    """
    if one == other:
        return one
    if KIND_RANK[one.kind] != KIND_RANK[other.kind]:
        higher, lower = (one, other) if KIND_RANK[one.kind] > KIND_RANK[other.kind] else (other, one)
        return TYPES["c128"] if higher.kind == "complex" and lower.name == "f64" else higher
    if one.kind == "integer" and one.signed != other.signed:
        signed, unsigned = (one, other) if one.signed else (other, one)
        return signed if signed.bits > unsigned.bits else TYPES[f"i{min(64, unsigned.bits * 2)}"]
    if one.bits == other.bits or (min(one.bits, other.bits) == 8 and one.is_float):
        return TYPES["f32"] if one.bits < 32 and other.bits < 32 else max(one, other, key=lambda each: each.bits)
    return max(one, other, key=lambda each: each.bits)
