"""C and CUDA types, as far as sizes, layout and integer arithmetic need them.

Sizes and alignments are those of CUDA C++ on a 64-bit host (CUDA C++ Programming Guide, "Built-in Vector Types").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache


@dataclass(frozen=True, slots=True)
class CType:
    """`size` and `align` in bytes; None where the type is not known (a template parameter, a foreign struct)."""

    name: str
    size: int | None
    align: int = 1
    kind: str = (
        "other"  # "int" | "uint" | "float" | "bool" | "pointer" | "array" | "struct" | "void" | "barrier" | "other"
    )
    to: CType | None = None  # what a pointer or a reference points to, an array's element
    extent: int | None = None  # an array's number of elements
    fields: tuple[tuple[str, int, CType], ...] = field(default=())  # (name, byte offset, type)
    assumed: bool = False  # a template parameter that nothing binds, taken as a 4-byte number
    origin: object = field(default=None, compare=False, repr=False)  # a struct's text and bindings: qualified.Origin

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint", "bool")

    def member(self, name: str) -> tuple[int, CType] | None:
        """(byte offset, type) of a field."""
        for field_name, offset, kind in self.fields:
            if field_name == name:
                return offset, kind
        return None

    def __hash__(self) -> int:
        return hash((self.name, self.size))  # enough to tell types apart, and quick for a struct of many members


UNKNOWN_TYPE = CType("?", None)
VOID = CType("void", 1, 1, "void")
BARRIER = CType("cuda::barrier", 8, 8, "barrier")
BOOL = CType("bool", 1, 1, "bool")
CHAR = CType("char", 1, 1, "int")
UCHAR = CType("unsigned char", 1, 1, "uint")
SHORT = CType("short", 2, 2, "int")
USHORT = CType("unsigned short", 2, 2, "uint")
INT = CType("int", 4, 4, "int")
UINT = CType("unsigned int", 4, 4, "uint")
LONG = CType("long", 8, 8, "int")
ULONG = CType("unsigned long", 8, 8, "uint")
HALF = CType("half", 2, 2, "float")
FLOAT = CType("float", 4, 4, "float")
DOUBLE = CType("double", 8, 8, "float")


@lru_cache(maxsize=1024)
def pointer_to(target: CType) -> CType:
    return CType(target.name + "*", 8, 8, "pointer", to=target)


def array_of(element: CType, extent: int | None) -> CType:
    size = element.size * extent if element.size is not None and extent is not None else None
    return CType(element.name + "[]", size, element.align, "array", to=element, extent=extent, assumed=element.assumed)


SCALARS: dict[str, CType] = {
    "void": VOID, "bool": BOOL, "char": CHAR, "signed char": CHAR, "unsigned char": UCHAR, "uchar": UCHAR,
    "int8_t": CHAR, "uint8_t": UCHAR, "short": SHORT, "unsigned short": USHORT, "ushort": USHORT, "int16_t": SHORT,
    "uint16_t": USHORT, "int": INT, "signed": INT, "unsigned": UINT, "unsigned int": UINT, "uint": UINT,
    "int32_t": INT, "uint32_t": UINT, "long": LONG, "unsigned long": ULONG, "ulong": ULONG, "long long": LONG,
    "unsigned long long": ULONG, "int64_t": LONG, "uint64_t": ULONG, "size_t": ULONG, "ssize_t": LONG,
    "ptrdiff_t": LONG, "uintptr_t": ULONG, "intptr_t": LONG, "clock_t": LONG, "wchar_t": INT, "u8": UCHAR,
    "half": HALF, "__half": HALF, "__nv_bfloat16": HALF, "nv_bfloat16": HALF, "float": FLOAT, "double": DOUBLE,
    "__nv_fp8_e4m3": UCHAR, "__nv_fp8_e5m2": UCHAR, "__nv_fp8_storage_t": UCHAR, "cudaTextureObject_t": ULONG,
    "cudaSurfaceObject_t": ULONG, "cufftReal": FLOAT, "cufftDoubleReal": DOUBLE, "at::Half": HALF, "c10::Half": HALF,
    "at::BFloat16": HALF, "c10::BFloat16": HALF,
}  # fmt: skip


def _vectors() -> dict[str, CType]:
    """char1 .. double4: members packed, aligned to the whole size for 1, 2 and 4 members (16 bytes at most)."""
    out: dict[str, CType] = {}
    for prefix, base in (
        ("char", CHAR), ("uchar", UCHAR), ("short", SHORT), ("ushort", USHORT), ("int", INT), ("uint", UINT),
        ("long", LONG), ("ulong", ULONG), ("longlong", LONG), ("ulonglong", ULONG), ("float", FLOAT),
        ("double", DOUBLE),
    ):  # fmt: skip
        size = base.size or 1
        for count in (1, 2, 3, 4):
            align = min(16, size * count) if count != 3 else size
            fields = tuple((n, i * size, base) for i, n in enumerate("xyzw"[:count]))
            out[f"{prefix}{count}"] = CType(f"{prefix}{count}", size * count, align, "struct", fields=fields)
    for name in ("half2", "__half2", "__nv_bfloat162", "nv_bfloat162"):
        out[name] = CType(name, 4, 4, "struct", fields=(("x", 0, HALF), ("y", 2, HALF)))
    for name, vector in (("cuFloatComplex", "float2"), ("cuComplex", "float2"), ("cuDoubleComplex", "double2"),
        ("cufftComplex", "float2"), ("cufftDoubleComplex", "double2"),
    ):  # fmt: skip
        out[name] = out[vector]
    for name, size, align in (  # curand_kernel.h, cuda_fp8.h: sizes that no member is read of
        ("curandState", 48, 8), ("curandState_t", 48, 8), ("curandStateXORWOW_t", 48, 8), ("curandStateXORWOW", 48, 8),
        ("curandStatePhilox4_32_10_t", 64, 16), ("curandStatePhilox4_32_10", 64, 16), ("__nv_fp8x2_e4m3", 2, 2),
        ("__nv_fp8x2_e5m2", 2, 2), ("__nv_fp8x4_e4m3", 4, 4), ("__nv_fp8x4_e5m2", 4, 4),
    ):  # fmt: skip
        out[name] = CType(name, size, align, "struct")
    out["dim3"] = CType("dim3", 12, 4, "struct", fields=out["uint3"].fields)
    pitched = ("ptr", pointer_to(VOID)), ("pitch", ULONG), ("xsize", ULONG), ("ysize", ULONG)
    fields = tuple((name, 8 * i, kind) for i, (name, kind) in enumerate(pitched))
    out["cudaPitchedPtr"] = CType("cudaPitchedPtr", 32, 8, "struct", fields=fields)
    fields = tuple((name, 8 * i, ULONG) for i, name in enumerate(("width", "height", "depth")))
    out["cudaExtent"] = CType("cudaExtent", 24, 8, "struct", fields=fields)
    return out


BUILTIN_TYPES: dict[str, CType] = {**SCALARS, **_vectors()}

_NOISE = frozenset({
    "const", "volatile", "static", "inline", "register", "constexpr", "__restrict__", "__restrict", "restrict",
    "extern", "signed", "struct", "class", "enum", "union", "typename", "mutable", "__shared__", "__device__",
    "__constant__", "__forceinline__", "__host__", "thread_local", "__managed__",
})  # fmt: skip


@cache
def builtin_type(text: str) -> CType | None:
    """The built-in type of that spelling, qualifiers and word order aside.

    >>> builtin_type("const long unsigned int").name, builtin_type("std::uint8_t").size, builtin_type("Foo")
    ('unsigned long', 1, None)
    """
    words = text.replace("std::", "").replace("cuda::", "").split()
    if words == ["signed"]:
        return INT
    words = [w for w in words if w not in _NOISE]
    name = " ".join(words)
    if name in BUILTIN_TYPES:
        return BUILTIN_TYPES[name]
    if not words or not set(words) <= {"unsigned", "long", "short", "int", "char", "double"}:
        return None
    unsigned = "unsigned" in words
    if "double" in words:
        return DOUBLE
    if "char" in words:
        return UCHAR if unsigned else CHAR
    if "short" in words:
        return USHORT if unsigned else SHORT
    if "long" in words:
        return ULONG if unsigned else LONG
    return UINT if unsigned else INT


def arithmetic_result(left: CType, right: CType) -> CType:
    """The usual arithmetic conversions (C++ standard, [expr.arith.conv])."""
    if left is right and (left is INT or left is UINT or left.kind == "float"):
        return left
    if left.kind == "float" or right.kind == "float":
        if left.kind == right.kind:
            return left if (left.size or 0) >= (right.size or 0) else right
        return left if left.kind == "float" else right
    if left.is_integer and right.is_integer:
        size = max(left.size or 4, right.size or 4, 4)
        unsigned = (left.kind == "uint" and left.size == size) or (right.kind == "uint" and right.size == size)
        if size == 8:
            return ULONG if unsigned else LONG
        return UINT if unsigned else INT
    return left if left.kind != "other" else right
