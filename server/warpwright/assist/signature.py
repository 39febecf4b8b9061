"""What a signature or declarations say: names, element types, what is an array and what may be written.

Pure text, C++ (`const float* __restrict__ x, __half out[], int n`) or tensors (`x: Tensor[R, C] float16, eps: float`,
`torch.Tensor x [R, C] float16`, `x (R, C) float32`). What is not understood has no type and fixes none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpwright.formulas.types import type_named

_TYPES = {
    "__half": "f16", "nv_half": "f16", "at::Half": "f16", "c10::Half": "f16", "half_t": "f16", "fp16": "f16",
    "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "at::BFloat16": "bf16", "c10::BFloat16": "bf16",
    "__nv_fp8_e4m3": "f8e4m3", "__nv_fp8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2", "real": "f32", "scalar_t": "",
    "char": "i8", "signed char": "i8", "int8_t": "i8", "unsigned char": "u8", "uchar": "u8", "uint8_t": "u8",
    "std::uint8_t": "u8", "byte": "u8", "short": "i16", "int16_t": "i16", "unsigned short": "u16", "ushort": "u16",
    "uint16_t": "u16", "int32_t": "i32", "signed int": "i32", "unsigned": "u32", "unsigned int": "u32", "uint": "u32",
    "uint32_t": "u32", "long long": "i64", "long int": "i64", "long long int": "i64", "int64_t": "i64", "ssize_t":
    "i64", "ptrdiff_t": "i64", "unsigned long": "u64", "unsigned long long": "u64", "size_t": "u64", "std::size_t":
    "u64", "uint64_t": "u64", "cuComplex": "c64", "cuFloatComplex": "c64", "cuDoubleComplex": "c128",
    "thrust::complex<float>": "c64", "cuda::std::complex<float>": "c64", "std::complex<float>": "c64",
    "thrust::complex<double>": "c128", "std::complex<double>": "c128",
}  # fmt: skip
_PACKED = re.compile(r"(float|double|int|half|uchar|char|short|uint)([234])")
_NO_PART_OF_A_TYPE = re.compile(r"\b(const|volatile|restrict|__restrict__|__restrict|struct|__global__|static)\b")
_EXTENTS = r"[^\[\](),]+(?:,[^\[\](),]+)*,?"
_TENSORS = (
    re.compile(rf"(?P<name>\w+)\s*:\s*(?P<type>[\w.]+)\s*(?:\[(?P<extents>{_EXTENTS})\])?\s*(?P<after>[\w.]*)"),
    re.compile(rf"(?:torch\.)?Tensor\s+(?P<name>\w+)\s*\[(?P<extents>{_EXTENTS})\]\s*(?P<after>[\w.]*)"),
    re.compile(rf"(?P<name>\w+)\s*\((?P<extents>{_EXTENTS})\)\s*(?P<after>[\w.]+)"),
)
_OUTSIDE_BRACKETS = re.compile(r"[,;](?![^\[(]*[\])])")
_PARAMETER = re.compile(r"(?P<type>.*?)(?P<name>[A-Za-z_]\w*)\s*(?P<array>(?:\[[^\]]*\]\s*)*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `type` is ours, "" where it is not known; a `float4` is "f32" of a packed kind.
    Of a tensor nothing says whether it is written; `rank` is None where no extents are."""

    name: str
    type: str
    pointer: bool
    constant: bool
    tensor: bool = False
    rank: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers, or points to such."""
        return self.type[:1] in ("i", "u")

    @property
    def is_size(self) -> bool:
        """Whether it may be an extent: a whole number that is handed over itself."""
        return not self.pointer and self.is_whole


def parameters(given: str) -> tuple[Parameter, ...]:
    """What is declared, in order; nothing of what cannot be read.

    >>> for each in parameters("const float* __restrict__ in, __half out[], unsigned int n"):
    ...     print(each.name, each.type, each.pointer, each.constant)
    in f32 True True
    out f16 True False
    n u32 False False
    >>> for each in parameters("x: Tensor[B, R] float16, eps: float"): print(each.name, each.type, each.rank)
    x f16 2
    eps f32 None
    """
    tensors = [_tensor(part.strip()) for part in _OUTSIDE_BRACKETS.split(given)]
    if any(each and each.pointer for each in tensors):
        return tuple(each for each in tensors if each)
    inside = re.search(r"\w\s*\((.*)\)", given, re.DOTALL)
    found = []
    for part in re.split(r"[,;]", inside[1] if inside else given):
        match = _PARAMETER.fullmatch(part.strip())
        if match is None:
            continue
        bare = " ".join(_NO_PART_OF_A_TYPE.sub(" ", match["type"].replace("*", " ").replace("&", " ")).split())
        pointer = "*" in match["type"] or bool(match["array"])
        constant = bool(re.search(r"\bconst\b[^*]*(\*|$)", match["type"])) and "const" in match["type"]
        found.append(Parameter(match["name"], _type(bare), pointer, constant))
    return tuple(found)


def _tensor(part: str) -> Parameter | None:
    """A tensor, or a number beside some."""
    found = next((match for form in _TENSORS if (match := form.fullmatch(part))), None)
    if found is None:
        return None
    said, extents = found.groupdict(), found["extents"]
    kinds = [_type(each.removeprefix("torch.")) for each in (said.get("type", ""), said["after"])]
    is_array = extents is not None or said.get("type", "").endswith("Tensor")
    rank = len([each for each in extents.split(",") if each.strip()]) if extents is not None else None
    return Parameter(found["name"], next(filter(None, kinds), ""), is_array, False, is_array, rank)


def _type(bare: str) -> str:
    if bare in _TYPES:
        return _TYPES[bare]
    packed = _PACKED.fullmatch(bare)
    if packed:
        return _type(packed[1])
    found = type_named(bare)
    return found.name if found else ""


def plain_name(name: str) -> str:
    """A name as it is compared: Python's `in_` is C's `in`.

    >>> plain_name("in_"), plain_name("A")
    ('in', 'a')
    """
    return name.rstrip("_").lower()
