"""A chain of two contractions for any size and type: a warp for each row, the softmax online."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from warpwright.writer.contraction_parts import filled, indented
from warpwright.writer.own_names import with_own_names
from warpwright.writer.text import listed

WARPS = 4


@dataclass(frozen=True, slots=True)
class ByRows:
    """What a kernel computes, as lines and expressions of C++: the elements of queries, keys and values, of `depth_at`
    and `column`; lines that say which row it is; the score, of `score`, the product; `since` and `until`, which keys a
    row sees; lines that store what it has gathered, for the row, and for its element `column`."""

    name: str
    text: str
    parameters: tuple[str, ...]
    count: str
    place: tuple[str, ...]
    key: str
    query: str
    key_element: str
    value: str
    depth: str
    width: str
    score: str
    base: str
    since: str
    until: str
    gathered: str
    row_results: str
    results: str
    taken: Container[str]


_KERNEL = """\
// $text
//
// Any size and alignment: a warp for each row. Its lanes take a key each, then a column each, kColumns times; where the
// largest score grows, what was summed up shrinks.
$head
    constexpr int kColumns = 8;
    const long long nth = blockIdx.x * ${warps}LL + threadIdx.x / 32;
    if (nth >= $count) return;
    const int lane = threadIdx.x % 32;
$place
    const long long since = $since;
    const long long until = $until;
    for (long long first_column = 0; first_column == 0 || first_column < $width; first_column += 32 * kColumns) {
        float most = -INFINITY;
        float total = 0.0f;
        float sums[kColumns] = {};
        for (long long first_key = since; first_key < until; first_key += 32) {
            const long long $key = first_key + lane;
            float score = -INFINITY;
            if ($key < until) {
                score = 0.0f;
                for (long long depth_at = 0; depth_at < $depth; ++depth_at) {
                    score += $query * $key_element;
                }
                score = $score;
            }
            float now = fmaxf(most, score);
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, apart));
            // A row without a key so far has -inf here, and -inf - -inf is no number.
            const float zero = now == -INFINITY ? 0.0f : now;
            const float shrink = ${base}f(most - zero);
            const float weight = ${base}f(score - zero);
            most = now;
            total = total * shrink + weight;
#pragma unroll
            for (int nth_column = 0; nth_column < kColumns; ++nth_column) sums[nth_column] *= shrink;
            for (int other = 0; other < 32 && first_key + other < until; ++other) {
                const long long $key = first_key + other;
                const float shared_weight = __shfl_sync(0xffffffff, weight, other);
#pragma unroll
                for (int nth_column = 0; nth_column < kColumns; ++nth_column) {
                    const long long column = first_column + lane + nth_column * 32;
                    if (column < $width) sums[nth_column] += shared_weight * $value;
                }
            }
        }
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) total += __shfl_xor_sync(0xffffffff, total, apart);
$gathered$row_results#pragma unroll
        for (int nth_column = 0; nth_column < kColumns; ++nth_column) {
            const long long column = first_column + lane + nth_column * 32;
            if (column >= $width) continue;
            const float sum = sums[nth_column];
$results
        }
    }
}
"""


def attention_rows(each: ByRows) -> str:
    """The kernel."""
    heading = f"__global__ void __launch_bounds__({32 * WARPS}) {each.name}("
    return filled(
        with_own_names(_KERNEL, each.taken),
        text=each.text.replace("\n", "\n// "), head="\n".join(listed(list(each.parameters), heading, ") {")),
        warps=WARPS, count=each.count, place=indented("\n".join(each.place)), key=each.key, query=each.query,
        key_element=each.key_element, value=each.value, depth=each.depth, width=each.width, score=each.score,
        base=each.base, since=each.since, until=each.until, gathered=indented(each.gathered, 8),
        row_results=indented(each.row_results, 8), results=indented(each.results, 12).rstrip("\n"),
    )  # fmt: skip
