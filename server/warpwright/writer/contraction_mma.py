"""Products in bf16 and f16 by mma.sync: slices come by cp.async, fragments are loaded one step ahead."""

from __future__ import annotations

from warpwright.schedules.contraction import TensorProduct
from warpwright.writer.contraction_parts import Operand, Product, filled, indented, place

_KERNEL = """\
// $text
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that, by mma.sync m16n8k16. kStages slices of
// both operands are in shared memory or on their way to it. kWhole: rows are whole 16-byte words, which cp.async
// copies; else elements are copied one by one.
template <bool kWhole>
$head
    constexpr int kTileM = $tile_m, kTileN = $tile_n, kTileK = 64;
    constexpr int kWarpM = $warp_m, kWarpN = $warp_n;
    constexpr int kStages = $stages;
    constexpr int kThreads = $threads;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
$lines
$place
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. The 16-byte pieces of a row are permuted by the row, so that eight rows of one column lie
    // in different banks; its rows are a multiple of 8 apart, so one permutation serves them all. What lies beyond the
    // last row or column is read from the last one: those sums are never stored. Beyond the last $k are zeros.
$begin
    auto fetch = [&](int from, unsigned to) {
$fetch
        asm volatile("cp.async.commit_group;");
    };

    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
$lanes
    unsigned left[2][kWarpM / 16][4];
    unsigned right[2][kWarpN / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kWarpM / 16; ++down) $load_a;
#pragma unroll
        for (int along = 0; along < kWarpN / 16; ++along) $load_b;
    };

    float sums[kWarpM / 16][kWarpN / 8][4] = {};
    const int slices = ($k + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
        fetch(ahead, shared_at + stage * kStageBytes);
        ahead += kTileK;
    }
    unsigned reading = shared_at;
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
        fetch(ahead, filling);  // into the stage that all warps have left
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
            } else {
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kWarpM / 16; ++down) {
#pragma unroll
                for (int along = 0; along < kWarpN / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_$ptx(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
    }
$epilogue
#pragma unroll
    for (int down = 0; down < kWarpM / 16; ++down) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = first_row + warp_row + down * 16 + half * 8 + lane / 4;
            if (row >= $m) continue;
#pragma unroll
            for (int along = 0; along < kWarpN / 8; ++along) {
                const int col = first_col + warp_col + along * 8 + lane % 4 * 2;
                $out_element* const to = $out_base + static_cast<long long>(row) * $n + col;
                if constexpr (kWhole) {
                    if (col < $n) *reinterpret_cast<$pair*>(to) = $to_pair;
                } else {
                    if (col < $n) to[0] = $first_result;
                    if (col + 1 < $n) to[1] = $second_result;
                }
            }
        }
    }
}
"""

_DEPTH_BEGIN = """\
constexpr int kCopies_$o = $tile * kTileK / 8 / kThreads;
constexpr int kApart_$o = kThreads / 8;  // rows of $o between two copies of a thread
const int ${o}_row = threadIdx.x / 8;
const int ${o}_depth = threadIdx.x % 8 * 8;
const unsigned ${o}_to = $stage${o}_row * 128 + (threadIdx.x % 8 ^ (${o}_row & 7)) * 16;
const $element* ${o}_from[kCopies_$o];
#pragma unroll
for (int nth = 0; nth < kCopies_$o; ++nth) {
    const long long row = min($first + ${o}_row + nth * kApart_$o, $extent - 1);
    ${o}_from[nth] = $base + row * $leading + ${o}_depth;
}
"""
_DEPTH_FETCH = """\
#pragma unroll
for (int nth = 0; nth < kCopies_$o; ++nth) {
    const unsigned place = to + ${o}_to + nth * kApart_$o * 128;
    if constexpr (kWhole) {
        copy16(place, ${o}_from[nth], from + ${o}_depth < $k);
    } else {
        copy_each(place, ${o}_from[nth], $k - from - ${o}_depth);
    }
    ${o}_from[nth] += kTileK;
}
"""
_FREE_BEGIN = """\
constexpr int kCopies_$o = $tile * kTileK / 8 / kThreads;
constexpr int kApart_$o = kThreads * 8 / $tile;  // rows of $o between two copies of a thread
const int ${o}_depth = threadIdx.x / ($tile / 8);
const int ${o}_piece = threadIdx.x % ($tile / 8);
const unsigned ${o}_to = $stage${o}_depth * $tile * 2 + (${o}_piece ^ (${o}_depth & 7)) * 16;
const int ${o}_place = kWhole ? min($first + ${o}_piece * 8, $extent - 8) : $first + ${o}_piece * 8;
const $element* ${o}_from = $base + static_cast<long long>(${o}_depth) * $leading + ${o}_place;
const long long ${o}_apart = static_cast<long long>(kApart_$o) * $leading;
"""
_FREE_FETCH = """\
#pragma unroll
for (int nth = 0; nth < kCopies_$o; ++nth) {
    const unsigned place = to + ${o}_to + nth * kApart_$o * $tile * 2;
    const bool there = from + ${o}_depth + nth * kApart_$o < $k;
    if constexpr (kWhole) {
        copy16(place, ${o}_from, there);
    } else {
        copy_each(place, ${o}_from, there ? $extent - ${o}_place : 0);
    }
    ${o}_from += ${o}_apart;
}
"""
_LANES = {
    ("a", "depth"): """\
const int ${o}_lane_row = warp_row + lane % 16;
const unsigned ${o}_lane = ${o}_lane_row * 128 + (lane / 16 ^ (lane & 7)) * 16;
""",
    ("a", "free"): """\
const int ${o}_lane_k = lane % 8 + lane / 16 * 8;
const unsigned ${o}_lane = ${o}_lane_k * kTileM * 2 + ((warp_row / 8 + lane / 8 % 2) ^ (lane & 7)) * 16;
""",
    ("b", "depth"): """\
const int ${o}_lane_row = warp_col + lane % 8 + lane / 16 * 8;
const unsigned ${o}_lane = kBytesA + ${o}_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;
""",
    ("b", "free"): """\
const int ${o}_lane_k = lane % 16;
const unsigned ${o}_lane = kBytesA + ${o}_lane_k * kTileN * 2 + ((warp_col / 8 + lane / 16) ^ (lane & 7)) * 16;
""",
}
_LOADS = {
    ("a", "depth"): "load_matrices(left[half][down], stage + (${o}_lane ^ step * 2) + down * 16 * 128)",
    ("a", "free"): "load_matrices_turned(left[half][down], stage + (${o}_lane ^ down * 32) + step * kTileM * 2)",
    ("b", "depth"): "load_matrices(right[half][along], stage + (${o}_lane ^ step * 2) + along * 16 * 128)",
    ("b", "free"): "load_matrices_turned(right[half][along], stage + (${o}_lane ^ along * 32) + step * kTileN * 2)",
}


def tensor_product(product: Product, schedule: TensorProduct) -> str:
    """The kernel of a product in bf16 or f16. Raises ValueError where the schedule is not legal."""
    if reason := schedule.refusal():
        raise ValueError(reason)
    a, b, n, k, element = product.a, product.b, product.n, product.k, product.element
    sides: tuple[tuple[Operand, str, str, str, str, str], ...] = (
        (a, "kTileM", "first_row", product.m, product.a_leading, ""),
        (b, "kTileN", "first_col", n, product.b_leading, "kBytesA + "),
    )

    def each(depth: str, free: str) -> str:
        return "".join(
            filled(
                depth if o.inner == "depth" else free,
                o=o.name, base=product.base(o.name), tile=tile, first=first, extent=extent, leading=leading,
                stage=stage, k=k, element=element,
            )
            for o, tile, first, extent, leading, stage in sides
        )  # fmt: skip

    def stored(total: str, col: str) -> str:
        value = product.result(total, "row", col)
        return value if product.out_type == "f32" else f"{_NARROW[product.out_type]}({value})"

    totals = ("sums[down][along][half * 2]", "sums[down][along][half * 2 + 1]")
    pair = f"{product.result(totals[0], 'row', 'col')}, {product.result(totals[1], 'row', 'col + 1')}"
    return filled(
        _KERNEL,
        name=product.name, text=product.text, m=product.m, n=n, k=k, ptx=product.type,
        out_element=product.out_element, out_base=product.base(product.out), tile_m=schedule.tile_m,
        tile_n=schedule.tile_n, warp_m=schedule.warp_m, warp_n=schedule.warp_n, stages=schedule.stages,
        threads=schedule.threads, head=product.head(schedule.threads, schedule.blocks),
        lines=indented(product.lines), place=indented(place(product)), epilogue=indented(product.epilogue),
        begin=indented(each(_DEPTH_BEGIN, _FREE_BEGIN)),
        fetch=indented(each(_DEPTH_FETCH, _FREE_FETCH), 8).rstrip("\n"),
        lanes=indented(filled(_LANES["a", a.inner], o=a.name) + filled(_LANES["b", b.inner], o=b.name)),
        load_a=filled(_LOADS["a", a.inner], o=a.name), load_b=filled(_LOADS["b", b.inner], o=b.name),
        pair=_PAIRS[product.out_type], to_pair=f"{_TO_PAIR[product.out_type]}({pair})",
        first_result=stored(totals[0], "col"), second_result=stored(totals[1], "col + 1"),
    )  # fmt: skip


_NARROW = {"bf16": "__float2bfloat16", "f16": "__float2half"}
_PAIRS = {"bf16": "__nv_bfloat162", "f16": "__half2", "f32": "float2"}
_TO_PAIR = {"bf16": "__floats2bfloat162_rn", "f16": "__floats2half2_rn", "f32": "make_float2"}
