"""Products in f32 without tensor cores: sums in registers, slices of both operands in shared memory."""

from __future__ import annotations

from warpwright.schedules.contraction import CoreProduct
from warpwright.writer.contraction_parts import Operand, Product, filled, indented, place

_KERNEL = """\
// $text
//
// A block computes a tile of kTileM x kTileN from slices of kTileK, a warp $warp_m x $warp_n of that. A thread keeps
// $thread_m x $thread_n sums, in pieces of 4 x 4 that lie $step_m rows and $step_n columns apart: the lanes of a warp
// then read neighbouring words of shared memory. kVector is 4 where rows are whole 16-byte words, else 1.$split_note
template <int kVector$split_parameter>
$head
    constexpr int kTileM = $tile_m, kTileN = $tile_n, kTileK = 8;
    constexpr int kThreadM = $thread_m, kThreadN = $thread_n;
    constexpr int kThreads = $threads;
    __shared__ $slices_a
    __shared__ $slices_b
$lines
$place
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int thread_row = warp / (kTileN / $warp_n) * $warp_m + lane / $lanes_n * 4;
    const int thread_col = warp % (kTileN / $warp_n) * $warp_n + lane % $lanes_n * 4;
$range
    // Where this thread's loads begin. What lies beyond the last row or column is read from the last one: those sums
    // are never stored. What lies beyond the last $k is read as zero.
$begin
    auto fetch = [&](int from) {
$fetch
    };
    auto put = [&](int slice) {
$put
    };

    float sums[kThreadM][kThreadN] = {};
    fetch($k_begin);
    put(0);
    __syncthreads();
    for (int from = $k_begin, slice = 0; from < $k_end; from += kTileK, slice ^= 1) {
        fetch(from + kTileK);  // under way while this slice is multiplied
#pragma unroll
        for (int step = 0; step < kTileK; ++step) {
            float left[kThreadM];
            float right[kThreadN];
#pragma unroll
            for (int down = 0; down < kThreadM; down += 4) {
                *reinterpret_cast<float4*>(&left[down]) =
                    *reinterpret_cast<const float4*>(&${a}_slices[slice][step][thread_row + down / 4 * $step_m]);
            }
#pragma unroll
            for (int along = 0; along < kThreadN; along += 4) {
                *reinterpret_cast<float4*>(&right[along]) =
                    *reinterpret_cast<const float4*>(&${b}_slices[slice][step][thread_col + along / 4 * $step_n]);
            }
#pragma unroll
            for (int down = 0; down < kThreadM; ++down) {
#pragma unroll
                for (int along = 0; along < kThreadN; ++along) sums[down][along] += left[down] * right[along];
            }
        }
        put(slice ^ 1);
        __syncthreads();
    }
$epilogue
#pragma unroll
    for (int down = 0; down < kThreadM; ++down) {
        const int row = first_row + thread_row + down / 4 * $step_m + down % 4;
        if (row >= $m) continue;
#pragma unroll
        for (int along = 0; along < kThreadN; along += 4) {
            const int col = first_col + thread_col + along / 4 * $step_n;
            const long long at = static_cast<long long>(row) * $n + col;
$store
        }
    }
}
"""

_DEPTH_BEGIN = """\
constexpr int kLoads_$o = $tile * kTileK / kVector / kThreads;
constexpr int kApart_$o = kThreads * kVector / kTileK;  // rows of $o between two loads of a thread
const int ${o}_row = threadIdx.x / (kTileK / kVector);
const int ${o}_depth = threadIdx.x % (kTileK / kVector) * kVector;
const float* ${o}_from[kLoads_$o];
#pragma unroll
for (int nth = 0; nth < kLoads_$o; ++nth) {
    const long long row = min($first + ${o}_row + nth * kApart_$o, $extent - 1);
    ${o}_from[nth] = $base + row * $leading + ${begin}${o}_depth;
}
float ${o}_next[kLoads_$o][kVector];
"""
_DEPTH_FETCH = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$o; ++nth) {
    load_or_zero(${o}_next[nth], ${o}_from[nth], from + ${o}_depth < $k_end);
    ${o}_from[nth] += kTileK;
}
"""
_DEPTH_PUT = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$o; ++nth) {
#pragma unroll
    for (int part = 0; part < kVector; ++part) {
        ${o}_slices[slice][${o}_depth + part][${o}_row + nth * kApart_$o] = ${o}_next[nth][part];
    }
}
"""
_FREE_BEGIN = """\
constexpr int kLoads_$o = $tile * kTileK / kVector / kThreads;
constexpr int kApart_$o = kThreads * kVector / $tile;  // rows of $o between two loads of a thread
const int ${o}_depth = threadIdx.x / ($tile / kVector);
const int ${o}_place = threadIdx.x % ($tile / kVector) * kVector;
const float* ${o}_from = $base + min($first + ${o}_place, $extent - kVector);
${o}_from += static_cast<long long>(${begin}${o}_depth) * $leading;
float ${o}_next[kLoads_$o][kVector];
"""
_FREE_FETCH = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$o; ++nth) {
    const bool is_there = from + ${o}_depth + nth * kApart_$o < $k_end;
    load_or_zero(${o}_next[nth], ${o}_from + static_cast<long long>(nth * kApart_$o) * $leading, is_there);
}
${o}_from += static_cast<long long>(kTileK) * $leading;
"""
_FREE_PUT = """\
#pragma unroll
for (int nth = 0; nth < kLoads_$o; ++nth) {
    float* const to = &${o}_slices[slice][${o}_depth + nth * kApart_$o][${o}_place];
    if constexpr (kVector == 4) {
        const float* const next = ${o}_next[nth];
        *reinterpret_cast<float4*>(to) = make_float4(next[0], next[1], next[2], next[3]);
    } else {
        *to = ${o}_next[nth][0];
    }
}
"""
_RANGE = """\

    // With kSplit this block takes a part of $k, in whole slices.
    const int share = (($k + kTileK - 1) / kTileK + gridDim.y - 1) / gridDim.y * kTileK;
    const int k_begin = min(static_cast<int>(blockIdx.y) * share, $k);
    const int k_end = min(k_begin + share, $k);
"""
_STORE = """\
if constexpr (kVector == 4) {
    if (col < $n) *reinterpret_cast<float4*>(&$to[at]) = make_float4($four);
} else {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
        if (col + part < $n) $to[at + part] = $one;
    }
}
"""
_PARTS = """\
if constexpr (kSplit) {
$parts} else {
$whole}
"""
_TOTAL = """\
// Adds up the parts of each sum in their order, so that the result is the same in every run.
$head
$lines
    const long long count = static_cast<long long>($m) * $n$batches;
    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (at >= count) return;
    const int tiles = (($m + $tile_m - 1) / $tile_m) * (($n + $tile_n - 1) / $tile_n)$batches;
    const int parts = min(min($places / tiles, $k / $least), $most);
    float total = 0.0f;
    for (int part = 0; part < parts; ++part) total += part_sums[part * count + at];
$epilogue
    $out[at] = $result;
}
"""
LEAST_DEPTH = 128
"""Of a part: less does not pay for the second launch."""
MOST_PARTS = 32


def core_product(product: Product, schedule: CoreProduct) -> str:
    """The kernel of a product in f32. Raises ValueError where the schedule is not legal."""
    if reason := schedule.refusal():
        raise ValueError(reason)
    a, b, n, k = product.a, product.b, product.n, product.k
    lanes_n = schedule.warp_n // schedule.thread_n
    split = schedule.split
    k_end = "k_end" if split else k
    begin = "k_begin + " if split else ""
    sides = (
        (a, "kTileM", "first_row", product.m, product.a_leading),
        (b, "kTileN", "first_col", n, product.b_leading),
    )

    def each(depth: str, free: str) -> str:
        return "".join(
            filled(
                depth if o.inner == "depth" else free,
                o=o.name, base=product.base(o.name) if o.batched else o.name, tile=tile, first=first, extent=extent,
                leading=leading, k_end=k_end, begin=begin,
            )
            for o, tile, first, extent, leading in sides
        )  # fmt: skip

    def slices(o: Operand, tile: str) -> str:
        if o.inner == "free":
            return f"__align__(16) float {o.name}_slices[2][kTileK][{tile}];"
        # Turned: 4 more keep the turned stores on different banks.
        return f"__align__(16) float {o.name}_slices[2][kTileK][{tile} + 4];  // turned, so 4 more: no bank twice"

    def store(to: str, value: str) -> str:
        four = ", ".join(
            value.replace("@", f"sums[down][along + {q}]" if q else "sums[down][along]").replace(
                "#", f"col + {q}" if q else "col"
            )
            for q in range(4)
        )
        one = value.replace("@", "sums[down][along + part]").replace("#", "col + part")
        return filled(_STORE, n=n, to=to, four=four, one=one)

    stores = store(product.base(product.out), product.result("@", "row", "#"))
    if split:
        count = f"static_cast<long long>({product.m}) * {n}{' * ' + product.batch if product.batch else ''}"
        first = f"static_cast<long long>(batch) * {product.m} * {n} + " if product.batch else ""
        line = f"float* const to = part_sums + {first}blockIdx.y * ({count});\n"
        stores = filled(_PARTS, parts=indented(line + store("to", "@")), whole=indented(stores))
    return filled(
        _KERNEL,
        name=product.name, text=product.text, a=a.name, b=b.name, m=product.m, n=n, k=k,
        tile_m=schedule.tile_m, tile_n=schedule.tile_n, thread_m=schedule.thread_m, thread_n=schedule.thread_n,
        warp_m=schedule.warp_m, warp_n=schedule.warp_n, threads=schedule.threads,
        lanes_n=lanes_n, step_m=32 // lanes_n * 4, step_n=lanes_n * 4,
        slices_a=slices(a, "kTileM"), slices_b=slices(b, "kTileN"),
        split_note=f"\n// With kSplit the blocks of a column of the grid share {k} of one tile." if split else "",
        split_parameter=", bool kSplit" if split else "",
        head=product.head(schedule.threads, schedule.blocks), lines=indented(product.lines),
        place=indented(place(product)),
        range=filled(_RANGE, k=k) if split else "",
        begin=indented(each(_DEPTH_BEGIN, _FREE_BEGIN)),
        fetch=indented(each(_DEPTH_FETCH, _FREE_FETCH), 8).rstrip("\n"),
        put=indented(each(_DEPTH_PUT, _FREE_PUT), 8).rstrip("\n"),
        k_begin="k_begin" if split else "0", k_end=k_end,
        epilogue=indented(product.epilogue),
        store=indented(stores, 12).rstrip("\n"),
    )  # fmt: skip


def total_kernel(product: Product, schedule: CoreProduct) -> str:
    """The kernel that adds up what the blocks gave that shared the depth of a tile."""
    return filled(
        _TOTAL,
        head=product.head(256), m=product.m, n=product.n, k=product.k,
        out=product.out,
        batches=f" * {product.batch}" if product.batch else "", lines=indented(product.lines),
        tile_m=schedule.tile_m, tile_n=schedule.tile_n, places=schedule.places, least=LEAST_DEPTH, most=MOST_PARTS,
        epilogue=indented(_rows_of(product) + product.epilogue) if product.epilogue else "",
        result=product.result("total", "row", "col"),
    )  # fmt: skip


def _rows_of(product: Product) -> str:
    lines = [f"const int col = static_cast<int>(at % {product.n});"]
    lines.append(f"const int row = static_cast<int>(at / {product.n} % {product.m});")
    if product.batch:
        lines.append(f"const int batch = static_cast<int>(at / {product.n} / {product.m});")
    return "\n".join(lines) + "\n"
