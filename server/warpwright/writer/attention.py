"""Attention in one kernel: both products by mma.sync, the softmax online between them."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.schedules.attention import FusedAttention
from warpwright.writer.contraction_parts import CUDA_TYPES, filled


@dataclass(frozen=True, slots=True)
class Attention:
    """`out[h, i, d] = sum[j] softmax[j](scale * sum[d] q[h, i, d] * k[h, j, d]) * v[h, j, d]`, packed arrays; with
    `causal` over j <= i. `heads` counts batches and heads together."""

    name: str
    text: str
    head: int
    type: str = "bf16"
    causal: bool = False
    q: str = "Q"
    k: str = "K"
    v: str = "V"
    out: str = "O"
    heads: str = "H"
    rows: str = "I"
    keys: str = "J"


_KERNEL = """\
#include <$header>
#include <cuda_runtime.h>
#include <limits.h>
#include <stdint.h>

namespace {

// $text
//
// A block keeps kRows rows of $q and walks over $k and $v in tiles of kKeys rows, two of each in shared memory or on
// their way. Each warp keeps its rows' sums of $out, the largest score so far and the sum of exponentials: where the
// largest grows, what was summed up shrinks.
constexpr int kRows = $tile_rows, kKeys = $tile_keys, kHead = $head;
constexpr int kThreads = $threads;
constexpr int kWarpRows = kRows / (kThreads / 32);
constexpr int kRowBytes = kHead * 2;
constexpr int kTileBytes = kKeys * kRowBytes;
constexpr int kStep = kThreads * 8 / kHead;  // rows between two copies of a thread: a multiple of 8

// 16 bytes without a register on their way; zeros where there is nothing.
__device__ __forceinline__ void copy16(unsigned to, const $element* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0));
}

__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

__device__ __forceinline__ void load_matrices_turned(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.$ptx.$ptx.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2 to the x, with an error of 2 units in the last place; the probabilities are rounded to $type anyway.
__device__ __forceinline__ float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned packed(float low, float high) {
    const $pair both = $to_pair(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

__global__ void __launch_bounds__(kThreads, $blocks)
${name}_kernel(const $element* __restrict__ $q, const $element* __restrict__ $k, const $element* __restrict__ $v,
    $element* __restrict__ $out, int $rows, int $keys, float scale_log2) {
    extern __shared__ __align__(1024) char shared[];
    const unsigned ${q}_tile = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned ${k}_tiles = ${q}_tile + kRows * kRowBytes;
    const unsigned ${v}_tiles = ${k}_tiles + 2 * kTileBytes;

    const int row_blocks = ($rows + kRows - 1) / kRows;
    const int head = blockIdx.x / row_blocks;
$first_row
    $q += static_cast<long long>(head) * $rows * kHead;
    $out += static_cast<long long>(head) * $rows * kHead;
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;

    // The 16-byte pieces of a row are permuted by the row, so that eight rows of one column lie in different banks.
    const int copy_row = threadIdx.x / (kHead / 8);
    const int copy_piece = threadIdx.x % (kHead / 8);
    const unsigned copy_to = copy_row * kRowBytes + (copy_piece ^ (copy_row & 7)) * 16;
    const long long start = (static_cast<long long>(head) * $keys + copy_row) * kHead + copy_piece * 8;
    const $element* ${k}_from = $k + start;
    const $element* ${v}_from = $v + start;
    auto fetch = [&](unsigned to, const $element*& from, int first_key) {
#pragma unroll
        for (int n = 0; n < kKeys / kStep; ++n) {
            const bool there = first_key + copy_row + n * kStep < $keys;
            copy16(to + copy_to + n * kStep * kRowBytes, from + n * kStep * kHead, there);
        }
        from += kKeys * kHead;
        asm volatile("cp.async.commit_group;");
    };

#pragma unroll
    for (int n = 0; n < kRows / kStep; ++n) {
        // Rows beyond the last one are read from it; they are never stored.
        const int row = min(first_row + copy_row + n * kStep, $rows - 1);
        const $element* from = $q + static_cast<long long>(row) * kHead + copy_piece * 8;
        copy16(${q}_tile + copy_to + n * kStep * kRowBytes, from, true);
    }
    fetch(${k}_tiles, ${k}_from, 0);
    fetch(${v}_tiles, ${v}_from, 0);

    // Where this lane's fragments lie; with a step along a row only an XOR with a constant changes.
    const unsigned ${q}_lane = ${q}_tile + (warp * kWarpRows + lane % 16) * kRowBytes + (lane / 16 ^ (lane & 7)) * 16;
    const unsigned ${k}_lane = (lane % 8 + lane / 16 * 8) * kRowBytes + (lane / 8 % 2 ^ (lane & 7)) * 16;
    const unsigned ${v}_lane = lane % 16 * kRowBytes + (lane / 16 ^ (lane & 7)) * 16;

    float sums[kWarpRows / 16][kHead / 8][4] = {};
    float largest[kWarpRows / 16][2];
    float total[kWarpRows / 16][2] = {};
#pragma unroll
    for (int i = 0; i < kWarpRows / 16; ++i) largest[i][0] = largest[i][1] = -INFINITY;

$ends
    unsigned current = 0;  // which of two tiles, in bytes
    for (int first_key = 0; first_key < keys_end; first_key += kKeys) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // the tile of $k is there, and all warps have left the ones before
        fetch(${k}_tiles + (current ^ kTileBytes), ${k}_from, first_key + kKeys);

        float scores[kWarpRows / 16][kKeys / 8][4] = {};
#pragma unroll
        for (int d = 0; d < kHead; d += 16) {
            unsigned a[kWarpRows / 16][4];
#pragma unroll
            for (int i = 0; i < kWarpRows / 16; ++i) load_matrices(a[i], (${q}_lane ^ d * 2) + i * 16 * kRowBytes);
#pragma unroll
            for (int j = 0; j < kKeys / 16; ++j) {
                unsigned b[4];
                load_matrices(b, ${k}_tiles + current + (${k}_lane ^ d * 2) + j * 16 * kRowBytes);
#pragma unroll
                for (int i = 0; i < kWarpRows / 16; ++i) {
                    multiply(scores[i][2 * j], a[i], b[0], b[1]);
                    multiply(scores[i][2 * j + 1], a[i], b[2], b[3]);
                }
            }
        }

        if ($crosses) {
#pragma unroll
            for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
                for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int key = first_key + j * 8 + lane % 4 * 2 + e % 2;
$hidden
                    }
                }
            }
        }

#pragma unroll
        for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float now = largest[i][half];
#pragma unroll
                for (int j = 0; j < kKeys / 8; ++j) {
                    now = fmaxf(now, fmaxf(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
                }
                now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 1));
                now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, 2));
                // A row without a key so far has -inf here, and -inf - -inf is no number.
                const float base = now == -INFINITY ? 0.0f : now * scale_log2;
                const float shrink = exp2_of(largest[i][half] * scale_log2 - base);
                largest[i][half] = now;
                total[i][half] *= shrink;
#pragma unroll
                for (int n = 0; n < kHead / 8; ++n) {
                    sums[i][n][2 * half] *= shrink;
                    sums[i][n][2 * half + 1] *= shrink;
                }
#pragma unroll
                for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
                    for (int e = 2 * half; e < 2 * half + 2; ++e) {
                        scores[i][j][e] = exp2_of(scores[i][j][e] * scale_log2 - base);
                        total[i][half] += scores[i][j][e];
                    }
                }
            }
        }

        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // the tile of $v is there
        fetch(${v}_tiles + (current ^ kTileBytes), ${v}_from, first_key + kKeys);
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) {
            // The sums of a product lie in the lanes as the left operand of the next.
            unsigned a[kWarpRows / 16][4];
#pragma unroll
            for (int i = 0; i < kWarpRows / 16; ++i) {
                a[i][0] = packed(scores[i][2 * j][0], scores[i][2 * j][1]);
                a[i][1] = packed(scores[i][2 * j][2], scores[i][2 * j][3]);
                a[i][2] = packed(scores[i][2 * j + 1][0], scores[i][2 * j + 1][1]);
                a[i][3] = packed(scores[i][2 * j + 1][2], scores[i][2 * j + 1][3]);
            }
#pragma unroll
            for (int n = 0; n < kHead / 16; ++n) {
                unsigned b[4];
                load_matrices_turned(b, ${v}_tiles + current + (${v}_lane ^ n * 32) + j * 16 * kRowBytes);
#pragma unroll
                for (int i = 0; i < kWarpRows / 16; ++i) {
                    multiply(sums[i][2 * n], a[i], b[0], b[1]);
                    multiply(sums[i][2 * n + 1], a[i], b[2], b[3]);
                }
            }
        }
        current ^= kTileBytes;
    }

#pragma unroll
    for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float all = total[i][half];
            all += __shfl_xor_sync(0xffffffff, all, 1);
            all += __shfl_xor_sync(0xffffffff, all, 2);
            const float inverse = 1.0f / all;
            const int row = first_row + warp * kWarpRows + i * 16 + half * 8 + lane / 4;
            if (row >= $rows) continue;
            $element* to = $out + static_cast<long long>(row) * kHead + lane % 4 * 2;
#pragma unroll
            for (int n = 0; n < kHead / 8; ++n) {
                *reinterpret_cast<unsigned*>(to + n * 8) =
                    packed(sums[i][n][2 * half] * inverse, sums[i][n][2 * half + 1] * inverse);
            }
        }
    }
}

bool aligned16(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

extern "C" cudaError_t $name(const $element* $q, const $element* $k, const $element* $v, $element* $out, int $heads,
    int $rows, int $keys, float scale, cudaStream_t stream) {
    if ($heads == 0 || $rows == 0) return cudaSuccess;
    // The largest score is found before it is scaled, and copies are of 16 bytes.
    if (!(scale > 0.0f) || !aligned16($q) || !aligned16($k) || !aligned16($v) || !aligned16($out)) {
        return cudaErrorNotSupported;
    }
    const long long blocks = static_cast<long long>(($rows + kRows - 1) / kRows) * $heads;
    if (blocks > INT_MAX) return cudaErrorInvalidValue;
    constexpr int bytes = kRows * kRowBytes + 4 * kTileBytes;
    const cudaError_t error = cudaFuncSetAttribute(${name}_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error) return error;
    const float scale_log2 = scale * 1.4426950408889634f;
    const unsigned grid = static_cast<unsigned>(blocks);
    ${name}_kernel<<<grid, kThreads, bytes, stream>>>($q, $k, $v, $out, $rows, $keys, scale_log2);
    return cudaGetLastError();
}
"""
_PLAIN = {
    "first_row": "    const int first_row = (blockIdx.x - head * row_blocks) * kRows;",
    "ends": "    const int keys_end = $keys;",
    "crosses": "first_key + kKeys > $keys",
    "hidden": "                        if (key >= $keys) scores[i][j][e] = -INFINITY;",
}
_CAUSAL = {
    "first_row": """\
    // The last rows have the most keys: they begin first.
    const int first_row = (row_blocks - 1 - (blockIdx.x - head * row_blocks)) * kRows;""",
    "ends": "    const int keys_end = min($keys, first_row + kRows);  // no later key is seen by a row of this block",
    "crosses": "first_key + kKeys > min($keys, first_row + warp * kWarpRows)",
    "hidden": """\
                        const int row = first_row + warp * kWarpRows + i * 16 + e / 2 * 8 + lane / 4;
                        if (key > row || key >= $keys) scores[i][j][e] = -INFINITY;""",
}


def fused_attention(attention: Attention, schedule: FusedAttention) -> str:
    """The CUDA of attention, kernel and launch. Raises ValueError where the schedule is not legal."""
    if reason := schedule.refusal(attention.head):
        raise ValueError(reason)
    bf16 = attention.type == "bf16"
    parts = _CAUSAL if attention.causal else _PLAIN
    return filled(
        _KERNEL,
        name=attention.name, text=attention.text, head=attention.head, q=attention.q, k=attention.k, v=attention.v,
        out=attention.out, heads=attention.heads, rows=attention.rows, keys=attention.keys, type=attention.type,
        header="cuda_bf16.h" if bf16 else "cuda_fp16.h", ptx=attention.type, element=CUDA_TYPES[attention.type],
        pair="__nv_bfloat162" if bf16 else "__half2", to_pair="__floats2bfloat162_rn" if bf16 else "__floats2half2_rn",
        tile_rows=schedule.rows, tile_keys=schedule.keys, threads=schedule.threads, blocks=schedule.blocks,
        **{name: filled(part, keys=attention.keys) for name, part in parts.items()},
    )  # fmt: skip
