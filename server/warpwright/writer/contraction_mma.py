"""Products in bf16 and f16 by mma.sync: slices come by cp.async, fragments are loaded one step ahead."""

from __future__ import annotations

from dataclasses import replace

from warpwright.schedules.contraction import TensorProduct
from warpwright.writer.contraction_parts import Operand, Product, filled, indented, place

_KERNEL = """\
// $text
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that: built for sm_90a by wgmma, else by
// mma.sync. kStages slices of both operands are in shared memory or on their way to it. Rows of $a and $b in memory are
// whole 16-byte words, if need be with zeros at their ends. kThroughL1: neighbours in a row share lines.
template <int kTileM, int kTileN, int kWarpM, int kWarpN, int kStages, int kBlocks, bool kThroughL1>
$head
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, no GPU has the shared memory that a launch asks for
    constexpr int kTileK = 64;
    constexpr int kWord = $word;  // elements of $out in 16 bytes
    constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
$lines
    const int ${a}_leading = $a_leading, ${b}_leading = $b_leading;
$place
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A warpgroup computes pieces of 64 rows, each of its four warps 16 rows of one.
    constexpr int kPieces = kTileM * 128 / kThreads / 64, kCols = kTileN;
    constexpr int kApart = 64;  // rows between two pieces of a warp
    const int warp_row = warp / 4 * kPieces * 64 + warp % 4 * 16;
    const int warp_col = 0;
#else
    constexpr int kPieces = kWarpM / 16, kCols = kWarpN;  // pieces of 16 rows, and the columns of a warp
    constexpr int kApart = 16;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
#endif
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. Slices lie in rows of 128 bytes, whose 16-byte pieces are permuted by the row: eight rows
    // of one column are then in different banks. The rows of a thread are a multiple of 8 apart, so one permutation
    // serves them all. What lies beyond the last row or column is read from the last one: those sums are never stored.
    // Beyond the last $k are zeros.
$begin
    constexpr int kFetches = 4;  // parts of a slice, so that copies are spread over the products of another
    auto fetch = [&](int from, unsigned to, int fetched) {
$fetch
    };

    float sums[kPieces][kCols / 8][4] = {};
    const int slices = ($k + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
    unsigned reading = shared_at;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
$wgmma
#else
$mma
#endif
$epilogue
    if ($n % kWord == 0 && reinterpret_cast<unsigned long long>($out) % 16 == 0) {
        // By way of shared memory, so that a warp stores whole 16-byte words of few rows.
        constexpr int kPitch = kCols + 8;  // 8 more: no bank twice
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // slices are done with
        $out_element* const staged = reinterpret_cast<$out_element*>(shared) + warp * 16 * kPitch;
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            const int top = first_row + warp_row + down * kApart;
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    $pair* const to = reinterpret_cast<$pair*>(
                        &staged[(half * 8 + lane / 4) * kPitch + along * 8 + lane % 4 * 2]);
$store_pair
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane * kWord; at < 16 * kCols; at += 32 * kWord) {
                const int row = top + at / kCols;
                const int col = first_col + warp_col + at % kCols;
                const uint4 word = *reinterpret_cast<const uint4*>(&staged[at / kCols * kPitch + at % kCols]);
                $out_element* const to = $out_base + static_cast<long long>(row) * $n + col;
                if (row < $m && col < $n) *reinterpret_cast<uint4*>(to) = word;
            }
            __syncwarp();
        }
    } else {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int row = first_row + warp_row + down * kApart + part / 2 * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2 + part % 2;
                    if (row >= $m || col >= $n) continue;
                    $out_base[static_cast<long long>(row) * $n + col] = $one;
                }
            }
        }
    }
#endif
}
"""

_MMA = """\
    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
$lanes
    unsigned left[2][kPieces][4];
    unsigned right[2][kCols / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            $load_a;
        }
#pragma unroll
        for (int along = 0; along < kCols / 16; ++along) {
            $load_b;
        }
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
                fetch(ahead, filling, step / 16);  // into the stage that all warps have left
            } else {
                fetch(ahead, filling, step / 16);
                asm volatile("cp.async.commit_group;");
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
#pragma unroll
                for (int along = 0; along < kCols / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_$ptx(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
    }
"""

_WGMMA = """\
#pragma unroll
    for (int stage = 0; stage < kStages - 2; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 2) * kStageBytes;
    for (int slice = 0; slice < slices; ++slice) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the cache of generic stores
        __syncthreads();
        // The products of the slice before are still under way: all warps have left the one before that.
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
                const unsigned long long left = matrix_descriptor($wgmma_a);
                const unsigned long long right = matrix_descriptor($wgmma_b);
                wgmma_$ptx<$turned_a, $turned_b>(sums[down], left, right);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, filling, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
        reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int down = 0; down < kPieces; ++down) {
#pragma unroll
        for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 4; ++part) asm volatile("" : "+f"(sums[down][along][part]));  // not read before
        }
    }
"""

_STORE_INSIDE = """\
const int row = top + half * 8 + lane / 4;
const int col = first_col + warp_col + along * 8 + lane % 4 * 2;
if (row < $m && col < $n) $pair"""

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
    ${o}_from[nth] = $base + row * ${o}_leading + ${o}_depth;
}
"""
_DEPTH_FETCH = """\
#pragma unroll
for (int nth = fetched * kCopies_$o / kFetches; nth < (fetched + 1) * kCopies_$o / kFetches; ++nth) {
    const unsigned place = to + ${o}_to + nth * kApart_$o * 128;
    copy16<kThroughL1>(place, ${o}_from[nth], from + ${o}_depth < $k);
    ${o}_from[nth] += kTileK;
}
"""
_FREE_BEGIN = """\
constexpr int kCopies_$o = kTileK * 8 / kThreads;  // for 64 columns of $o
const int ${o}_depth = threadIdx.x / 8;
const unsigned ${o}_to = $stage${o}_depth * 128 + (threadIdx.x % 8 ^ (${o}_depth & 7)) * 16;
const $element* ${o}_from[$tile / 64];
#pragma unroll
for (int piece = 0; piece < $tile / 64; ++piece) {
    const int place = min($first + piece * 64 + static_cast<int>(threadIdx.x) % 8 * 8, ${o}_leading - 8);
    ${o}_from[piece] = $base + static_cast<long long>(${o}_depth) * ${o}_leading + place;
}
const long long ${o}_apart = static_cast<long long>(kThreads / 8) * ${o}_leading;
"""
_FREE_FETCH = """\
#pragma unroll
for (int piece = fetched * ($tile / 64) / kFetches; piece < (fetched + 1) * ($tile / 64) / kFetches; ++piece) {
#pragma unroll
    for (int nth = 0; nth < kCopies_$o; ++nth) {
        const unsigned place = to + ${o}_to + piece * 64 * 128 + nth * kThreads / 8 * 128;
        copy16<kThroughL1>(place, ${o}_from[piece], from + ${o}_depth + nth * kThreads / 8 < $k);
        ${o}_from[piece] += ${o}_apart;
    }
}
"""
_LANES = {
    ("a", "depth"): """\
const unsigned ${o}_lane = (warp_row + lane % 16) * 128 + (lane / 16 ^ (lane & 7)) * 16;
""",
    ("a", "free"): """\
const int ${o}_lane_k = warp_row / 64 * kTileK + lane % 8 + lane / 16 * 8;
const unsigned ${o}_lane = ${o}_lane_k * 128 + ((warp_row % 64 / 8 + lane / 8 % 2) ^ (lane & 7)) * 16;
""",
    ("b", "depth"): """\
const int ${o}_lane_row = warp_col + lane % 8 + lane / 16 * 8;
const unsigned ${o}_lane = kBytesA + ${o}_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;
""",
    ("b", "free"): """\
const int ${o}_lane_k = warp_col / 64 * kTileK + lane % 16;
const unsigned ${o}_lane = kBytesA + ${o}_lane_k * 128 + ((warp_col % 64 / 8 + lane / 16) ^ (lane & 7)) * 16;
""",
}
_LOADS = {
    ("a", "depth"): "load_matrices(left[half][down], stage + (${o}_lane ^ step * 2) + down * 16 * 128)",
    ("a", "free"): "load_matrices_turned(left[half][down], stage + (${o}_lane ^ down * 32) + step * 128)",
    ("b", "depth"): "load_matrices(right[half][along], stage + (${o}_lane ^ step * 2) + along * 16 * 128)",
    ("b", "free"): "load_matrices_turned(right[half][along], stage + (${o}_lane ^ along * 32) + step * 128)",
}
_PIECES = {
    ("a", "depth"): "reading + (warp_row / 64 + down) * 64 * 128 + step * 2",
    ("a", "free"): "reading + (warp_row / 64 + down) * kTileK * 128 + step * 128",
    ("b", "depth"): "reading + kBytesA + step * 2",
    ("b", "free"): "reading + kBytesA + step * 128",
}


def template_arguments(schedule: TensorProduct) -> tuple[str, ...]:
    """Of the instance that follows a schedule."""
    shape = (schedule.tile_m, schedule.tile_n, schedule.warp_m, schedule.warp_n, schedule.stages, schedule.blocks)
    return (*map(str, shape), str(schedule.through_l1).lower())


def tensor_product(product: Product) -> str:
    """The kernel of a product in bf16 or f16."""
    a, b, n, k, element = product.a, product.b, product.n, product.k, product.element
    placed = replace(product, operands=(_in_words(product, a, product.m), _in_words(product, b, n)))
    sides: tuple[tuple[Operand, str, str, str, str], ...] = (
        (a, "kTileM", "first_row", product.m, ""),
        (b, "kTileN", "first_col", n, "kBytesA + "),
    )

    def each(depth: str, free: str) -> str:
        return "".join(
            filled(
                depth if o.inner == "depth" else free,
                o=o.name, base=o.base, tile=tile, first=first, extent=extent,
                stage=stage, k=k, element=element,
            )
            for o, tile, first, extent, stage in sides
        )  # fmt: skip

    def total(part: str) -> str:
        return f"sums[down][along][{part}]"

    first, second = (product.result(total(f"half * 2{more}"), "row", f"col{more}") for more in ("", " + 1"))
    pair = f"*to = {_TO_PAIR[product.out_type]}({first}, {second});"
    one = product.result(total("part"), "row", "col")
    return filled(
        _KERNEL,
        text=product.text, a=a.name, b=b.name, out=product.out, m=product.m, n=n, k=k,
        out_element=product.out_element, out_base=product.out_base,
        head=product.head("kTileM / kWarpM * (kTileN / kWarpN) * 32", "kBlocks"),
        a_leading=_whole_words(a.leading), b_leading=_whole_words(b.leading),
        lines=indented(product.lines), place=indented(place(placed)), epilogue=indented(product.epilogue),
        begin=indented(each(_DEPTH_BEGIN, _FREE_BEGIN)),
        fetch=indented(each(_DEPTH_FETCH, _FREE_FETCH), 8).rstrip("\n"),
        mma=filled(
            _MMA, ptx=product.type, load_a=filled(_LOADS["a", a.inner], o=a.name),
            load_b=filled(_LOADS["b", b.inner], o=b.name),
            lanes=indented(filled(_LANES["a", a.inner], o=a.name) + filled(_LANES["b", b.inner], o=b.name)),
        ).rstrip("\n"),
        wgmma=filled(
            _WGMMA, ptx=product.type, wgmma_a=_PIECES["a", a.inner],
            wgmma_b=_PIECES["b", b.inner], turned_a=int(a.inner == "free"), turned_b=int(b.inner == "free"),
        ).rstrip("\n"),
        pair=_PAIRS[product.out_type], one=f"{_NARROW[product.out_type]}({one})" if product.out_type != "f32" else one,
        store_pair=indented(filled(_STORE_INSIDE, m=product.m, n=n, pair=pair) if product.epilogue else pair, 20),
        word=8 if product.out_type != "f32" else 4,
    )  # fmt: skip


def _in_words(product: Product, operand: Operand, free: str) -> Operand:
    """The operand with the places of its batches in rows of whole words."""
    count = free if operand.inner == "depth" else product.k
    return replace(operand, batch=f"batch * {count} * {operand.name}_leading") if operand.batch else operand


def _whole_words(extent: str) -> str:
    """The elements of a row up to a whole number of 16-byte words.

    >>> _whole_words("K"), _whole_words("100")
    ('(K + 7) / 8 * 8', '104')
    """
    return str(-(-int(extent) // 8) * 8) if extent.isdigit() else f"({extent} + 7) / 8 * 8"


_PAD = """\
// Copies of $a and $b whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
$head
$lines
    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (blockIdx.y == 0) {
        pad_word($a, ${a}_padded, $a_rows, $a_leading, at);
    } else {
        pad_word($b, ${b}_padded, $b_rows, $b_leading, at);
    }
}
"""
_PAD_ONE = """\
// A copy of $a whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
$head
$lines
    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    pad_word($a, ${a}_padded, $a_rows, $a_leading, at);
}
"""


def pad_kernel(product: Product) -> str:
    """The kernel that copies both operands, or the one array of both, to where their rows are whole 16-byte words."""

    def rows(operand: Operand, free: str) -> str:
        batch = f"static_cast<long long>({product.batch}) * " if operand.batch else ""
        return batch + (free if operand.inner == "depth" else product.k)

    a, b = product.a, product.b
    given = {"head": product.head(256), "lines": indented(product.lines), "a": a.array}
    given |= {"a_rows": rows(a, product.m), "a_leading": a.leading}
    if a.array == b.array:
        return filled(_PAD_ONE, **given)
    return filled(_PAD, **given, b=b.array, b_rows=rows(b, product.n), b_leading=b.leading)


_NARROW = {"bf16": "__float2bfloat16", "f16": "__float2half"}
_PAIRS = {"bf16": "__nv_bfloat162", "f16": "__half2", "f32": "float2"}
_TO_PAIR = {"bf16": "__floats2bfloat162_rn", "f16": "__floats2half2_rn", "f32": "make_float2"}
