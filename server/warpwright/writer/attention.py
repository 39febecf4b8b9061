"""A chain of two contractions in one kernel: both by mma.sync, the softmax online between them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from warpwright.schedules.attention import FusedAttention, in_shared
from warpwright.writer.contraction_parts import CUDA_TYPES, filled, indented
from warpwright.writer.own_names import own_name, with_own_names
from warpwright.writer.text import listed, mentions


@dataclass(frozen=True, slots=True)
class Side:
    """Queries, keys or values in names of C++: where they begin for the block's heads, and the distance of two rows.
    `extent` is the length of a row, `padded` the next multiple of 16."""

    name: str
    base: str
    stride: str
    extent: str
    padded: str


@dataclass(frozen=True, slots=True)
class Fused:
    """What a kernel computes, as lines and expressions of C++. `score` is an expression of `score`, the product, and
    of `row` and `key`, "" where the product is kept; 2 is raised to what is kept times `unit`. `since` and `until` are
    expressions of `row`, then of `row_type`, "" where the keys have no such end; `grows` where later rows have more
    keys. `results` are lines that store what a row has gathered."""

    name: str
    text: str
    type: str
    parameters: tuple[str, ...]
    queries: Side
    keys: Side
    values: Side
    row: str
    rows: str
    key: str
    key_count: str
    batch: tuple[str, ...]
    score: str
    unit: str
    since: str
    until: str
    row_type: str
    grows: bool
    results: str
    template: bool
    taken: Container[str]


_KERNEL = """\
// $text
//
// A block keeps kRows rows of $q and walks over $k and $v in tiles of kKeys rows, two of each in shared memory or on
// their way. Each warp keeps its rows' sums, the largest score so far and the sum of exponentials: where the largest
// grows, what was summed up shrinks.$template_note
$template$head
    constexpr int kRows = $tile_rows, kKeys = $tile_keys;
    constexpr int kThreads = $threads;
    constexpr int kWarpRows = kRows / (kThreads / 32);
    $sizes
    constexpr int kRowBytes = kPieces * 16;
    constexpr int kTileBytes = kKeys * kRowBytes;
    constexpr int kStep = kThreads / kPieces;  // rows between two copies of a thread: a multiple of 8
    const float unit = $unit;  // exponentials are powers of 2
    extern __shared__ __align__(1024) char shared[];
    const unsigned ${q}_tile = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned ${k}_tiles = ${q}_tile + kRows * kRowBytes;
    const unsigned ${v}_tiles = ${k}_tiles + 2 * kTileBytes;

$place
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
$edges
    // The 16-byte pieces of a row are permuted by the row, so that eight rows of one column lie in different banks.
    const int copy_row = threadIdx.x / kPieces;
    const int copy_piece = threadIdx.x % kPieces;
    const unsigned copy_to = copy_row * kRowBytes + (copy_piece ^ (copy_row & 7)) * 16;
    const long long ${k}_stride = $k_stride;
    const long long ${v}_stride = $v_stride;
    const $element* ${k}_from = $k_base + $first * ${k}_stride + copy_piece * 8;
    const $element* ${v}_from = $v_base + $first * ${v}_stride + copy_piece * 8;
    auto fetch = [&](unsigned to, const $element*& from, long long stride, int first_key$fetch_parameter) {
#pragma unroll
        for (int step = 0; step < kKeys / kStep; ++step) {
            const bool is_there = first_key + copy_row + step * kStep < $key_end$fetch_test;
            copy16<false>(to + copy_to + step * kStep * kRowBytes, from, is_there);
            from += kStep * stride;
        }
        asm volatile("cp.async.commit_group;");
    };

#pragma unroll
    for (int step = 0; step < kRows / kStep; ++step) {
        // Rows beyond the last one are read from it; they are never stored.
        const long long row = min(first_row + copy_row + step * kStep, $rows - 1);
        const $element* const from = $q_base + row * $q_stride + copy_piece * 8;
        copy16<false>(${q}_tile + copy_to + step * kStep * kRowBytes, from, $q_there);
    }
    fetch(${k}_tiles, ${k}_from, ${k}_stride, $begin$k_width);
    fetch(${v}_tiles, ${v}_from, ${v}_stride, $begin$v_width);

    // Where this lane's fragments lie; with a step along a row only an XOR with a constant changes.
    const unsigned ${q}_lane = ${q}_tile + (warp * kWarpRows + lane % 16) * kRowBytes + (lane / 16 ^ (lane & 7)) * 16;
    const unsigned ${k}_lane = (lane % 8 + lane / 16 * 8) * kRowBytes + (lane / 8 % 2 ^ (lane & 7)) * 16;
    const unsigned ${v}_lane = lane % 16 * kRowBytes + (lane / 16 ^ (lane & 7)) * 16;
    const int warp_row = first_row + warp * kWarpRows;
    const int lane_row = warp_row + lane / 4;

    float sums[kWarpRows / 16][kWidth / 8][4] = {};
    float most[kWarpRows / 16][2];
    float totals[kWarpRows / 16][2] = {};
#pragma unroll
    for (int down = 0; down < kWarpRows / 16; ++down) most[down][0] = most[down][1] = -INFINITY;

    unsigned current = 0;  // which of two tiles, in bytes
    for (int first_key = $begin; first_key < $key_end; first_key += kKeys) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // the tile of $k is there, and all warps have left the ones before
        fetch(${k}_tiles + (current ^ kTileBytes), ${k}_from, ${k}_stride, first_key + kKeys$k_width);

        float scores[kWarpRows / 16][kKeys / 8][4] = {};
#pragma unroll
        for (int step = 0; step < kDepth; step += 16) {
            unsigned left[kWarpRows / 16][4];
#pragma unroll
            for (int down = 0; down < kWarpRows / 16; ++down) {
                load_matrices(left[down], (${q}_lane ^ step * 2) + down * 16 * kRowBytes);
            }
#pragma unroll
            for (int along = 0; along < kKeys / 16; ++along) {
                unsigned right[4];
                load_matrices(right, ${k}_tiles + current + (${k}_lane ^ step * 2) + along * 16 * kRowBytes);
#pragma unroll
                for (int down = 0; down < kWarpRows / 16; ++down) {
                    mma_$type(scores[down][2 * along], left[down], right[0], right[1]);
                    mma_$type(scores[down][2 * along + 1], left[down], right[2], right[3]);
                }
            }
        }

$scoring
#pragma unroll
        for (int down = 0; down < kWarpRows / 16; ++down) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float now = most[down][half];
#pragma unroll
                for (int along = 0; along < kKeys / 8; ++along) {
                    now = fmaxf(now, fmaxf(scores[down][along][2 * half], scores[down][along][2 * half + 1]));
                }
                now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 1));
                now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 2));
                // A row without a key so far has -inf here, and -inf - -inf is no number.
                const float zero = now == -INFINITY ? 0.0f : now * unit;
                const float shrink = exp2_of(most[down][half] * unit - zero);
                most[down][half] = now;
                totals[down][half] *= shrink;
#pragma unroll
                for (int along = 0; along < kWidth / 8; ++along) {
                    sums[down][along][2 * half] *= shrink;
                    sums[down][along][2 * half + 1] *= shrink;
                }
#pragma unroll
                for (int along = 0; along < kKeys / 8; ++along) {
#pragma unroll
                    for (int part = 2 * half; part < 2 * half + 2; ++part) {
                        scores[down][along][part] = exp2_of(scores[down][along][part] * unit - zero);
                        totals[down][half] += scores[down][along][part];
                    }
                }
            }
        }

        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // the tile of $v is there
        fetch(${v}_tiles + (current ^ kTileBytes), ${v}_from, ${v}_stride, first_key + kKeys$v_width);
#pragma unroll
        for (int step = 0; step < kKeys / 16; ++step) {
            // The sums of a product lie in the lanes as the left operand of the next.
            unsigned left[kWarpRows / 16][4];
#pragma unroll
            for (int down = 0; down < kWarpRows / 16; ++down) {
                left[down][0] = packed_$type(scores[down][2 * step][0], scores[down][2 * step][1]);
                left[down][1] = packed_$type(scores[down][2 * step][2], scores[down][2 * step][3]);
                left[down][2] = packed_$type(scores[down][2 * step + 1][0], scores[down][2 * step + 1][1]);
                left[down][3] = packed_$type(scores[down][2 * step + 1][2], scores[down][2 * step + 1][3]);
            }
#pragma unroll
            for (int along = 0; along < kWidth / 16; ++along) {
                unsigned right[4];
                load_matrices_turned(right, ${v}_tiles + current + (${v}_lane ^ along * 32) + step * 16 * kRowBytes);
#pragma unroll
                for (int down = 0; down < kWarpRows / 16; ++down) {
                    mma_$type(sums[down][2 * along], left[down], right[0], right[1]);
                    mma_$type(sums[down][2 * along + 1], left[down], right[2], right[3]);
                }
            }
        }
        current ^= kTileBytes;
    }

#pragma unroll
    for (int down = 0; down < kWarpRows / 16; ++down) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = totals[down][half];
            total += __shfl_xor_sync(0xffffffff, total, 1);
            total += __shfl_xor_sync(0xffffffff, total, 2);
            const int $row = lane_row + down * 16 + half * 8;
            if ($row >= $rows) continue;
$results
        }
    }
}
"""
_KEY = "                const int $key = first_key + along * 8 + lane % 4 * 2 + part;\n"
_SCORING = """\
#pragma unroll
for (int down = 0; down < kWarpRows / 16; ++down) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
$ends#pragma unroll
        for (int along = 0; along < kKeys / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 2; ++part) {
$own_key                float& score = scores[down][along][2 * half + part];
                $change
            }
        }
    }
}
"""


def fused_attention(fused: Fused, schedule: FusedAttention, head: int) -> str:
    """The kernel, for heads of at most that size. Raises ValueError where the schedule is not legal."""
    if reason := schedule.refusal(head):
        raise ValueError(reason)
    q, k, v, taken = fused.queries, fused.keys, fused.values, fused.taken
    row = in_shared(head)
    is_full = not fused.template and all(each.extent == each.padded == str(row) for each in (k, v))
    sizes = "constexpr int kDepth = kHead, kWidth = kHead, kPieces = kHead / 8;"
    if not fused.template:
        pieces = f"constexpr int kPieces = {row // 8};  // of 16 bytes, in a row of shared memory"
        sizes = f"constexpr int kDepth = {k.padded}, kWidth = {v.padded};\n    {pieces}"
    bounds = f"{schedule.threads}, {schedule.blocks}" if schedule.blocks > 1 else str(schedule.threads)
    heading = f"__global__ void __launch_bounds__({bounds}) {fused.name}("
    end = own_name("key_end", taken) if fused.until else fused.key_count
    begin = own_name("key_begin", taken) if fused.since else "0"
    copy_row = own_name("copy_row", taken)
    first = f"({begin} + {copy_row})" if fused.since else copy_row
    return filled(
        with_own_names(_KERNEL, taken),
        text=fused.text.replace("\n", "\n// "), type=fused.type, element=CUDA_TYPES[fused.type],
        head="\n".join(listed(list(fused.parameters), heading, ") {")),
        template="template <int kHead>\n" if fused.template else "",
        template_note=" kHead is at least the length of a row." if fused.template else "",
        tile_rows=schedule.rows, tile_keys=schedule.keys, threads=schedule.threads, sizes=sizes, unit=fused.unit,
        q=q.name, k=k.name, v=v.name, q_base=q.base, k_base=k.base, v_base=v.base,
        q_stride=q.stride, k_stride=k.stride, v_stride=v.stride, place=indented(_place(fused)),
        edges=indented(_edges(fused)), begin=begin, first=first, key_end=end, rows=fused.rows, row=fused.row,
        fetch_parameter="" if is_full else ", int width", fetch_test="" if is_full else " && copy_piece * 8 < width",
        k_width="" if is_full else f", {k.extent}", v_width="" if is_full else f", {v.extent}",
        q_there="true" if is_full else f"copy_piece * 8 < {q.extent}",
        scoring=indented(_scoring(fused), 8), results=indented(fused.results, 12).rstrip("\n"),
    )  # fmt: skip


def _place(fused: Fused) -> str:
    """Which rows a block has, and of which heads."""
    blocks = "const int row_blocks = ($rows + kRows - 1) / kRows;\n"
    head = "const int head = blockIdx.x / row_blocks;\n" if fused.batch else ""
    block = "(blockIdx.x - head * row_blocks)" if fused.batch else "blockIdx.x"
    text = f"{blocks if fused.batch or fused.grows else ''}{head}"
    if fused.grows:
        text += "// The last rows have the most keys: they begin first.\n"
        block = f"(row_blocks - 1 - {block})"
    text += f"const int first_row = {block} * kRows;\n"
    return filled(with_own_names(text, fused.taken), rows=fused.rows) + "".join(f"{each}\n" for each in fused.batch)


_UNTIL = """\
auto key_until = [&]($row_type $row) {
    return $until;
};
const int key_end = key_until(min(first_row + kRows, $rows) - 1);  // no later key is seen by a row of this block
"""
_SINCE = """\
auto key_since = [&]($row_type $row) {
    return $since;
};
const int key_begin = key_since(first_row) / kKeys * kKeys;
"""


def _edges(fused: Fused) -> str:
    text = f"{_UNTIL if fused.until else ''}{_SINCE if fused.since else ''}"
    return filled(
        with_own_names(text, fused.taken),
        row=fused.row,
        rows=fused.rows,
        until=fused.until,
        since=fused.since,
        row_type=fused.row_type,
    )


def _scoring(fused: Fused) -> str:
    """The scores of a tile, those of hidden keys -inf."""
    crosses = f"first_key + kKeys > {'key_until(warp_row)' if fused.until else '$keys'}"
    ends, tests = "", [f"$key >= {'until' if fused.until else '$keys'}"]
    if fused.until:
        ends += "        const int until = key_until($row);\n"
    if fused.since:
        crosses += " || first_key < key_since(warp_row + kWarpRows - 1)"
        ends += "        const int since = key_since($row);\n"
        tests.append("$key < since")
    hidden = " || ".join(tests)
    lines = f"score = {hidden}\n{' ' * 28}? -INFINITY\n{' ' * 28}: $score;"
    change = lines if fused.score else f"if ({hidden}) score = -INFINITY;"

    place = "lane_row + down * 16 + half * 8"
    place = f"min({place}, $rows - 1)" if fused.score else place

    def loop(change: str, ends: str) -> str:
        score = fused.score if "$score" in change else ""
        row = f"        const int $row = {place};\n" if "$row" in ends or mentions(score, fused.row) else ""
        key = _KEY if "$key" in change or mentions(score, fused.key) else ""
        return indented(_SCORING.replace("$change", change).replace("$ends", row + ends).replace("$own_key", key))

    text = f"if ({crosses}) {{\n{loop(change, ends)}}}"
    text += f" else {{\n{loop('score = $score;', '')}}}\n" if fused.score else "\n"
    return filled(
        with_own_names(text, fused.taken), row=fused.row, key=fused.key, keys=fused.key_count, score=fused.score,
        rows=fused.rows,
    )  # fmt: skip
