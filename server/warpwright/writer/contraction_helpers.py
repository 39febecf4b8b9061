"""Functions on the device that kernels of products call."""

from __future__ import annotations

_LOADS = """\
__device__ __forceinline__ void load_matrices$turned(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4$trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}
"""
_MMA = """\
__device__ __forceinline__ void mma_$type(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.$type.$type.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
"""
PRODUCT_HELPERS = {
    "load_or_zero": """\
// kVector neighbours in memory, or zeros where there are none.
template <int kVector>
__device__ __forceinline__ void load_or_zero(float (&to)[kVector], const float* from, bool is_there) {
    if constexpr (kVector == 4) {
        const float4 all = is_there ? *reinterpret_cast<const float4*>(from) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
    } else {
        to[0] = is_there ? *from : 0.0f;
    }
}
""",
    "copy16": """\
// 16 bytes without a register on their way; zeros where there is nothing.
__device__ __forceinline__ void copy16(unsigned to, const void* from, bool is_there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
}
""",
    "copy_each": """\
// 8 elements of 2 bytes one by one, `count` of them there; zeros for the others.
__device__ __forceinline__ void copy_each(unsigned to, const void* from, int count) {
    const unsigned short* const halves = static_cast<const unsigned short*>(from);
    unsigned words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        const unsigned low = 2 * word < count ? halves[2 * word] : 0;
        const unsigned high = 2 * word + 1 < count ? halves[2 * word + 1] : 0;
        words[word] = low | high << 16;
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}
""",
    "load_matrices": _LOADS.replace("$turned", "").replace("$trans", ""),
    "load_matrices_turned": _LOADS.replace("$turned", "_turned").replace("$trans", ".trans"),
    "mma_bf16": _MMA.replace("$type", "bf16"),
    "mma_f16": _MMA.replace("$type", "f16"),
}
"""By name."""
