"""Products without tensor cores: sums in registers, slices of both operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.formulas.tree import Call, Expr, Num
from warpwright.schedules.contraction import CoreProduct
from warpwright.writer.contraction_parts import Product, filled, indented, place
from warpwright.writer.contraction_sides import Side, SideText

_KERNEL = """\
// $text
//
// A block computes a tile of kTileM x kTileN from slices of kTileK, a warp $warp_m x $warp_n of that. A thread keeps
// $thread_m x $thread_n sums, in pieces of kPiece x kPiece that lie $step_m rows and $step_n columns apart, so that the
// lanes of a warp read neighbouring words of shared memory. kVector is 4 where rows are whole packs of 4, else 1.
template <int kVector>
$head
    constexpr int kTileM = $tile_m, kTileN = $tile_n, kTileK = $depth;
    constexpr int kThreadM = $thread_m, kThreadN = $thread_n, kPiece = $piece;
    constexpr int kThreads = $threads;
    __shared__ $slices_a
    __shared__ $slices_b
$place
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int warp_row = warp / (kTileN / $warp_n) * $warp_m;
    const int warp_col = warp % (kTileN / $warp_n) * $warp_n;
    const int thread_row = warp_row + lane / $lanes_n * kPiece;
    const int thread_col = warp_col + lane % $lanes_n * kPiece;

$range    // Where this thread's loads begin. What lies beyond the last row or column is read from the last
    // one: such sums are never stored. What lies beyond the last $k $padded.
$begin
    auto fetch = [&](int from) {
$fetch
    };
    auto put = [&]($put_parameters) {
$put
    };

    __align__(16) $sum sums[kThreadM][kThreadN]$start
    fetch($k_begin);
    put($put_first);
    __syncthreads();
    for (int from = $k_begin, slice = 0; from < $k_end; from += kTileK, slice ^= 1) {
        fetch(from + kTileK);  // under way while this slice is multiplied
#pragma unroll
        for (int step = 0; step < kTileK; ++step) {
            __align__(16) $a_value left[kThreadM];
            __align__(16) $b_value right[kThreadN];
#pragma unroll
            for (int down = 0; down < kThreadM; down += kPiece) {
                const int row = thread_row + down / kPiece * $step_m;
                store_pack(&left[down], load_pack<kPiece>(&${a}_slices[slice][step][row]));
            }
#pragma unroll
            for (int along = 0; along < kThreadN; along += kPiece) {
                const int col = thread_col + along / kPiece * $step_n;
                store_pack(&right[along], load_pack<kPiece>(&${b}_slices[slice][step][col]));
            }
#pragma unroll
            for (int down = 0; down < kThreadM; ++down) {
#pragma unroll
                for (int along = 0; along < kThreadN; ++along) {
                    $accumulate
                }
            }
        }
        put($put_next);
        __syncthreads();
    }

$store_part$epilogue
    if constexpr (kVector == 4) {
#pragma unroll
        for (int down = 0; down < kThreadM; ++down) {
            const long long row = first_row + thread_row + down / kPiece * $step_m + down % kPiece;
            if (row >= $m) continue;
#pragma unroll
            for (int along = 0; along < kThreadN; along += kPiece) {
                const long long col = first_col + thread_col + along / kPiece * $step_n;
                if (col >= $n) continue;
                Pack<$out_element, kPiece> results;
#pragma unroll
                for (int nth = 0; nth < kPiece; ++nth) {
                    results.at[nth] = $one;
                }
                store_pack(&$out[$at], results);
            }
        }
    } else {
        // Lanes hand each other their sums, so that neighbours store neighbours.
        $sum* const turned = reinterpret_cast<$sum*>(&${a}_slices) + warp * ($lanes_m * $warp_n);
#pragma unroll
        for (int down = 0; down < kThreadM; ++down) {
            __syncwarp();
#pragma unroll
            for (int along = 0; along < kThreadN; along += kPiece) {
                const int col = lane % $lanes_n * kPiece + along / kPiece * $step_n;
                store_pack(&turned[lane / $lanes_n * $warp_n + col], load_pack<kPiece>(&sums[down][along]));
            }
            __syncwarp();
            const int down_row = warp_row + down / kPiece * $step_m + down % kPiece;
#pragma unroll
            for (int nth = lane; nth < $lanes_m * $warp_n; nth += 32) {
                const long long row = first_row + down_row + nth / $warp_n * kPiece;
                const long long col = first_col + warp_col + nth % $warp_n;
                if (row < $m && col < $n) $out[$at] = $turned;
            }
        }
    }
}
"""

_PARTS = """\
// The last tiles, which do not fill the GPU, are shared by several blocks each.
const int tiles = tile_rows * tile_cols$batches;
const int whole = tiles / $places * $places;
const int parts = max(1, min($places / max(tiles - whole, 1), $k / $least));
"""
_NUMBER = """\
const int block = blockIdx.x;
const int $number = block < whole ? block : whole + (block - whole) / parts;
const int part = block < whole ? 0 : (block - whole) % parts;
"""
_RANGE = """\
// The part of $k that this block takes, in whole slices.
const int slices = ($k + kTileK - 1) / kTileK;
const int share = ($number < whole ? slices : (slices + parts - 1) / parts) * kTileK;
const int k_begin = min(part * share, $k);
const int k_end = min(k_begin + share, $k);

"""
_STORE_PART = """\
    if ($number >= whole && parts > 1) {
        $sum* const to = part_sums + static_cast<long long>(block - whole) * (kTileM * kTileN);
#pragma unroll
        for (int down = 0; down < kThreadM; ++down) {
            const int row = thread_row + down / kPiece * $step_m + down % kPiece;
#pragma unroll
            for (int along = 0; along < kThreadN; along += kPiece) {
                const int col = thread_col + along / kPiece * $step_n;
                store_pack(&to[row * kTileN + col], load_pack<kPiece>(&sums[down][along]));
            }
        }
        return;
    }
"""
_TOTAL = """\
// Adds up the parts of each sum in their order, so that the result is the same in every run.
$head
    constexpr int kTileM = $tile_m, kTileN = $tile_n, kPiece = $piece;
    constexpr int kPieces = kTileM * kTileN / kPiece;
$place
    const int in_tile = thread % kPieces * kPiece;
    const long long row = first_row + in_tile / kTileN;
    const long long first = first_col + in_tile % kTileN;
    if (row >= $m) return;

    const $sum* const from = part_sums + static_cast<long long>($number - whole) * parts * (kTileM * kTileN) + in_tile;
    Pack<$sum, kPiece> totals = load_pack<kPiece>(from);
    for (int part = 1; part < parts; ++part) {
        const Pack<$sum, kPiece> next = load_pack<kPiece>(from + part * (kTileM * kTileN));
#pragma unroll
        for (int nth = 0; nth < kPiece; ++nth) {
            $combine
        }
    }
$epilogue
#pragma unroll
    for (int nth = 0; nth < kPiece; ++nth) {
        const long long col = first + nth;
        if (col < $n) $out[$at] = $result;
    }
}
"""
LEAST_DEPTH = 128
"""Of a part: less does not pay for the second launch."""


@dataclass(frozen=True, slots=True)
class CoreText:
    """A product in names of C++. `sum` is the type of its sums, `start` their first value, "" for 0; `accumulate` is
    the line that adds to one, `combine` the one that adds up those of parts. `padding` is what lies beyond the end of
    the depth; `at` tells where the element at `row` and `col` lies in the result. `is_split`: blocks share the depth of
    a tile."""

    product: Product
    left: Side
    right: Side
    sum: str
    start: str
    accumulate: str
    combine: str
    padding: str
    at: str
    is_split: bool

    @property
    def k_end(self) -> str:
        """Where the depth of a block ends."""
        return "k_end" if self.is_split else self.product.k


def core_product(text: CoreText, schedule: CoreProduct) -> str:
    """The kernel of a product. Raises ValueError where the schedule is not legal."""
    if reason := schedule.refusal():
        raise ValueError(reason)
    product, left, right = text.product, text.left, text.right
    lanes_n = schedule.warp_n // schedule.thread_n
    lanes_m = 32 // lanes_n
    step_m, step_n = lanes_m * schedule.piece, lanes_n * schedule.piece
    number = _number(product)
    between = _parts(text, schedule) + filled(_NUMBER, number=number)
    tile = place(product, number, between) if text.is_split else place(product)
    k_begin, k_end = "k_begin" if text.is_split else "0", text.k_end
    needs_place = not (left.is_zero and right.is_zero)
    depth = (k_end, text.padding, text.is_split)
    sides = [
        SideText(left, "kTileM", "first_row", product.m, *depth),
        SideText(right, "kTileN", "first_col", product.n, *depth),
    ]
    part = filled(_STORE_PART, number=number, sum=text.sum, step_m=step_m, step_n=step_n)
    fill = f";\n    for (auto& row : sums) {{\n        for (auto& each : row) each = {text.start};\n    }}"
    return filled(
        _KERNEL,
        text=product.text, a=left.name, b=right.name, m=product.m, n=product.n, k=product.k,
        head=product.head(schedule.threads, schedule.blocks), depth=schedule.depth, **_sizes(schedule),
        thread_m=schedule.thread_m, thread_n=schedule.thread_n, warp_m=schedule.warp_m, warp_n=schedule.warp_n,
        threads=schedule.threads, lanes_m=lanes_m, lanes_n=lanes_n,
        step_m=step_m, step_n=step_n,
        slices_a=sides[0].slices, slices_b=sides[1].slices,
        place=indented(product.lines + tile),
        range=indented(filled(_RANGE, k=product.k, number=number)) if text.is_split else "",
        store_part=part if text.is_split else "",
        padded="counts as " + text.padding if needs_place else "is read as zero",
        begin=indented("".join(each.begin for each in sides)),
        fetch=indented("".join(each.fetch for each in sides), 8).rstrip("\n"),
        put=indented("".join(each.put for each in sides), 8).rstrip("\n"),
        put_parameters="int slice, int from" if needs_place else "int slice",
        put_first=f"0, {k_begin}" if needs_place else "0", k_begin=k_begin, k_end=k_end,
        put_next="slice ^ 1, from + kTileK" if needs_place else "slice ^ 1",
        sum=text.sum, start=fill if text.start else " = {};",
        a_value=left.value_type, b_value=right.value_type, accumulate=text.accumulate,
        epilogue=indented(product.epilogue), out=product.out_base, out_element=product.out_element, at=text.at,
        one=product.result("sums[down][along + nth]", "row", "col + nth"),
        turned=product.result("turned[nth]", "row", "col"),
    )  # fmt: skip


def total_kernel(text: CoreText, schedule: CoreProduct) -> str:
    """The kernel that adds up what the blocks gave that shared the depth of a tile."""
    product = text.product
    number = _number(product)
    thread = f"const int thread = blockIdx.x * 256 + threadIdx.x;\nconst int {number} = whole + thread / kPieces;\n"
    return filled(
        _TOTAL,
        head=product.head(256), number=number, m=product.m, n=product.n, sum=text.sum, combine=text.combine,
        **_sizes(schedule),
        place=indented(product.lines + place(product, number, _parts(text, schedule) + thread, operands=False)),
        epilogue=indented(product.epilogue), out=product.out_base, at=text.at,
        result=product.result("totals.at[nth]", "row", "col"),
    )  # fmt: skip


def _number(product: Product) -> str:
    """The name of a tile's number, among those of all batches."""
    return "number" if product.batch else "tile"


def _sizes(schedule: CoreProduct) -> dict[str, int]:
    return {"tile_m": schedule.tile_m, "tile_n": schedule.tile_n, "piece": schedule.piece}


def _parts(text: CoreText, schedule: CoreProduct) -> str:
    batch = text.product.batch
    return filled(
        _PARTS,
        k=text.product.k, places=schedule.places, least=LEAST_DEPTH,
        batches=f" * {batch}" if batch else "",
    )  # fmt: skip


def parts_of(rest: Expr, depth: Expr, schedule: CoreProduct) -> Expr:
    """How many blocks share the depth of each of the last tiles; less than 2 where they do not."""
    places = Call("//", (Num(schedule.places), Call("max", (rest, Num(1)))))
    return Call("min", (places, Call("//", (depth, Num(LEAST_DEPTH)))))
