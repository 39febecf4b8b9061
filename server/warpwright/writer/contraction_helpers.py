"""Functions on the device that kernels of products call."""

from __future__ import annotations

from warpwright.writer.contraction_parts import filled

_LOADS = """\
[[maybe_unused]] __device__ __forceinline__ void load_matrices$turned(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4$trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}
"""
_MMA = """\
[[maybe_unused]] __device__ __forceinline__ void mma_$type(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                          unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.$type.$type.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
"""
_PACKED = """\
__device__ __forceinline__ unsigned packed_$type(float low, float high) {
    const $pair both = $to_pair(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}
"""
_DESCRIPTOR = """\
// What wgmma is told of an operand in shared memory: rows of 128 bytes, whose pieces of 16 are permuted by the row; the
// next eight rows after 1024 bytes; of a turned operand the next 64 columns after 64 rows.
[[maybe_unused]] __device__ __forceinline__ unsigned long long matrix_descriptor(unsigned at) {
    constexpr unsigned long long kSwizzle128 = 1ull << 62;
    return kSwizzle128 | (1024ull >> 4) << 32 | (64 * 128ull >> 4) << 16 | (at & 0x3ffff) >> 4;
}
"""


def _wgmma(kind: str, wide: int) -> str:
    """`wgmma` of 64 x `wide` sums: a warp has 16 rows of them."""
    parts = [f"%{at}" for at in range(wide // 2)]
    rows = [", ".join(parts[at : at + 16]) for at in range(0, len(parts), 16)]
    text = [f'"wgmma.mma_async.sync.aligned.m64n{wide}k16.f32.{kind}.{kind} {{"']
    text += [f'"{row}{", " if number + 1 < len(rows) else ""}"' for number, row in enumerate(rows)]
    count = wide // 2
    text.append(f'"}}, %{count}, %{count + 1}, 1, 1, 1, %{count + 2}, %{count + 3};"')
    outputs = [
        ", ".join(f'"+f"(d[{at // 4}][{at % 4}])' for at in range(start, start + 8)) for start in range(0, count, 8)
    ]
    lines = [
        f"__device__ __forceinline__ void wgmma_{kind}(float (&d)[{wide // 8}][4], "
        "unsigned long long a, unsigned long long b) {"
    ]
    first, *more = text
    lines.append(f"    asm volatile({first}")
    lines += [f"                 {each}" for each in more]
    lines.append(f"                 : {outputs[0]}{',' if len(outputs) > 1 else ''}")
    lines += [
        f"                   {each}{',' if number + 2 < len(outputs) else ''}"
        for number, each in enumerate(outputs[1:])
    ]
    lines.append('                 : "l"(a), "l"(b), "n"(kTurnedA), "n"(kTurnedB)')
    lines.append('                 : "memory");')
    return "\n".join(["template <int kTurnedA, int kTurnedB>", *lines, "}"]) + "\n"


PRODUCT_HELPERS = {
    "load_or_zero": """\
// Neighbours in memory, or zeros where there are none.
template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> load_or_zero(const T* from, bool is_there) {
    return is_there ? load_pack<kCount>(from) : Pack<T, kCount>{};
}
""",
    "copy16": """\
// 16 bytes without a register on their way; zeros where there is nothing.
template <bool kThroughL1 = false>
__device__ __forceinline__ void copy16(unsigned to, const void* from, bool is_there) {
    const int bytes = is_there ? 16 : 0;
    if constexpr (kThroughL1) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }
}
""",
    "pad_word": """\
// 8 elements of 2 bytes, number `at` of such words in `rows` rows: what is behind the `cols` elements of a row is zero.
__device__ __forceinline__ void pad_word(const void* from, void* to, long long rows, int cols, long long at) {
    const int words = (cols + 7) / 8;
    const long long row = at / words;
    if (row >= rows) return;
    const int col = static_cast<int>(at % words) * 8;
    const unsigned short* const halves = static_cast<const unsigned short*>(from) + row * cols + col;
    unsigned both[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        const unsigned low = col + 2 * word < cols ? halves[2 * word] : 0;
        const unsigned high = col + 2 * word + 1 < cols ? halves[2 * word + 1] : 0;
        both[word] = low | high << 16;
    }
    static_cast<uint4*>(to)[at] = make_uint4(both[0], both[1], both[2], both[3]);
}
""",
    "load_matrices": _LOADS.replace("$turned", "").replace("$trans", ""),
    "load_matrices_turned": _LOADS.replace("$turned", "_turned").replace("$trans", ".trans"),
    "matrix_descriptor": _DESCRIPTOR,
    **{f"wgmma_{kind}_{wide}": _wgmma(kind, wide) for kind in ("bf16", "f16") for wide in (64, 128, 256)},
    "mma_bf16": _MMA.replace("$type", "bf16"),
    "mma_f16": _MMA.replace("$type", "f16"),
    "exp2_of": """\
// 2 to the x, with an error of 2 units in the last place.
__device__ __forceinline__ float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
""",
    "packed_bf16": filled(_PACKED, type="bf16", pair="__nv_bfloat162", to_pair="__floats2bfloat162_rn"),
    "packed_f16": filled(_PACKED, type="f16", pair="__half2", to_pair="__floats2half2_rn"),
}
"""By name."""
PRODUCT_NEEDS = {"load_or_zero": ("load_pack",)}
"""What they call."""
