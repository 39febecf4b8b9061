"""How the operands of a product without tensor cores pass from memory through registers into shared memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpwright.writer.contraction_parts import Operand, filled

_DEPTH_SIDE = """\
constexpr int kLoads_$s = $tile * kTileK / kVector / kThreads;
constexpr int kApart_$s = kThreads * kVector / kTileK;  // rows of $s between two loads of a thread
const int ${s}_row = threadIdx.x / (kTileK / kVector);
const int ${s}_depth = threadIdx.x % (kTileK / kVector) * kVector;
"""
_DEPTH_BEGIN = """\
const $element* ${o}_from[kLoads_$s];
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
    const long long $index = min($first + ${s}_row + nth * kApart_$s, $extent - 1);
    ${o}_from[nth] = $base + $free$begin;
}
Pack<$element, kVector> ${o}_next[kLoads_$s];
"""
_DEPTH_FETCH = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
    ${o}_next[nth] = load_or_zero<kVector>(${o}_from[nth], from + ${s}_depth < $k_end);
    ${o}_from[nth] += $advance;
}
"""
_DEPTH_FETCH_AT = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
    const int depth = from + ${s}_depth;
    const long long at = $at;
    ${o}_next[nth] = load_or_zero<kVector>(${o}_from[nth] + at, depth < $k_end);
}
"""
_DEPTH_PUT = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
$free_line#pragma unroll
    for (int part = 0; part < kVector; ++part) {
$depth_line        ${s}_slices[slice][${s}_depth + part][${s}_row + nth * kApart_$s] = $value;
    }
}
"""
_FREE_SIDE = """\
constexpr int kLoads_$s = $tile * kTileK / kVector / kThreads;
constexpr int kApart_$s = kThreads * kVector / $tile;  // rows of $s between two loads of a thread
const int ${s}_depth = threadIdx.x / ($tile / kVector);
const int ${s}_to = threadIdx.x % ($tile / kVector) * kVector;
const long long ${s}_at = min($first + ${s}_to, $extent - kVector);
"""
_FREE_BEGIN = """\
const $element* ${o}_from = $base + $free$begin;
Pack<$element, kVector> ${o}_next[kLoads_$s];
"""
_FREE_FETCH = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
    const bool is_there = from + ${s}_depth + nth * kApart_$s < $k_end;
    ${o}_next[nth] = load_or_zero<kVector>(${o}_from + $apart, is_there);
}
${o}_from += $advance;
"""
_FREE_FETCH_AT = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
    const int depth = from + ${s}_depth + nth * kApart_$s;
    const long long at = $at;
    ${o}_next[nth] = load_or_zero<kVector>(${o}_from + at, depth < $k_end);
}
"""
_FREE_PUT = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
    store_pack(&${s}_slices[slice][${s}_depth + nth * kApart_$s][${s}_to], ${o}_next[nth]);
}
"""
_FREE_PUT_EACH = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$s; ++nth) {
$depth_line    Pack<$value_type, kVector> values;
#pragma unroll
    for (int part = 0; part < kVector; ++part) {
$free_line        values.at[part] = $value;
    }
    store_pack(&${s}_slices[slice][${s}_depth + nth * kApart_$s][${s}_to], values);
}
"""


@dataclass(frozen=True, slots=True)
class Side:
    """An operand as it passes into shared memory: by which arrays, of which the first lies as `inner` says.
    `value` is what is put there of `X_next[nth].at[part]`, at the index `index` ("row" or "col") and at `depth`;
    `is_zero` where it is 0 beyond the end of the depth because what is loaded is."""

    name: str
    index: str
    inner: str
    operands: tuple[Operand, ...]
    value_type: str
    value: str
    is_plain: bool
    is_zero: bool


@dataclass(frozen=True, slots=True)
class SideText:
    """The texts of one side: slices of `tile` elements from `first` on, of `extent`. What lies beyond the depth, which
    ends at `k_end` for this block, counts as `padding`; `is_split`: it begins at k_begin."""

    side: Side
    tile: str
    first: str
    extent: str
    k_end: str
    padding: str
    is_split: bool

    @property
    def slices(self) -> str:
        side = self.side
        if side.inner == "free":
            return f"__align__(16) {side.value_type} {side.name}_slices[2][kTileK][{self.tile}];"
        said = "transposed, padded: no bank conflicts"
        return f"__align__(16) {side.value_type} {side.name}_slices[2][kTileK][{self.tile} + kPiece];  // {said}"

    @property
    def begin(self) -> str:
        side = self.side
        common = {"s": side.name, "tile": self.tile, "first": self.first, "extent": self.extent}
        is_depth = side.inner == "depth"
        out = filled(_DEPTH_SIDE if is_depth else _FREE_SIDE, **common)
        for each in side.operands:
            depth = f"k_begin + {side.name}_depth" if self.is_split else f"{side.name}_depth"
            begin = depth if each.step == "1" else f"static_cast<long long>({depth}) * {each.step}"
            begin = "" if each.depth else f" + {begin}"
            free = each.free.replace("@", side.index if is_depth else f"{side.name}_at")
            out += filled(
                _DEPTH_BEGIN if is_depth else _FREE_BEGIN,
                **common, o=each.name, element=each.element, base=each.base, free=free, begin=begin, index=side.index,
            )  # fmt: skip
        return out

    @property
    def fetch(self) -> str:
        out = ""
        for each in self.side.operands:
            if each.depth:
                text = _DEPTH_FETCH_AT if self.side.inner == "depth" else _FREE_FETCH_AT
                out += filled(text, s=self.side.name, o=each.name, k_end=self.k_end, at=each.depth)
                continue
            apart = f"nth * kApart_{self.side.name}"
            out += filled(
                _DEPTH_FETCH if self.side.inner == "depth" else _FREE_FETCH,
                s=self.side.name, o=each.name, k_end=self.k_end, advance=_times("kTileK", each.step),
                apart=apart if each.step == "1" else _times(f"({apart})", each.step),
            )  # fmt: skip
        return out

    @property
    def put(self) -> str:
        side = self.side
        is_depth = side.inner == "depth"
        if side.is_plain and not is_depth:
            return filled(_FREE_PUT, s=side.name, o=side.operands[0].name)
        free_line = depth_line = ""
        value = side.value
        at = f"{side.name}_row + nth * kApart_{side.name}" if is_depth else f"{side.name}_to + part"
        if _reads(value, side.index):
            line = f"const long long {side.index} = min({self.first} + {at}, {self.extent} - 1);\n"
            free_line = ("    " if is_depth else "        ") + line
        if not side.is_zero:
            value = f"depth < {self.k_end} ? {value} : {self.padding}"
            extra = "part" if is_depth else f"nth * kApart_{side.name}"
            kind = "long long" if _reads(side.value, "depth") else "int"
            depth_line = f"const {kind} depth = from + {side.name}_depth + {extra};\n"
            depth_line = ("        " if is_depth else "    ") + depth_line
        return filled(
            _DEPTH_PUT if is_depth else _FREE_PUT_EACH,
            s=side.name, value_type=side.value_type, value=value, free_line=free_line, depth_line=depth_line,
        )  # fmt: skip


def _times(count: str, step: str) -> str:
    return count if step == "1" else f"static_cast<long long>{count if count[0] == '(' else f'({count})'} * {step}"


def _reads(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
