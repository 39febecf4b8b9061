"""Functions on the device with which lanes of a row meet, and packs of elements that are moved at once."""

from __future__ import annotations

PACK = """
// kCount elements that are read and written at once, by up to 16 bytes.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
    T at[kCount];
};
"""

LOAD = """
template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> load_pack(const T* from) {
    return *reinterpret_cast<const Pack<T, kCount>*>(from);
}
"""

STORE = """
template <typename T, int kCount>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kCount>& from) {
    *reinterpret_cast<Pack<T, kCount>*>(to) = from;
}
"""

LOAD_SOME = """
// As load_pack; at the end of the array, where fewer are left, those alone.
template <int kCount, typename T, typename Index>
__device__ __forceinline__ Pack<T, kCount> load_some(const T* from, Index left) {
    if (left >= kCount) return load_pack<kCount>(from);
    Pack<T, kCount> some;
#pragma unroll
    for (int k = 0; k < kCount; ++k) some.at[k] = from[k < left ? k : 0];
    return some;
}
"""

STORE_SOME = """
// As store_pack; at the end of the array, where fewer are left, those alone.
template <typename T, int kCount, typename Index>
__device__ __forceinline__ void store_some(T* to, const Pack<T, kCount>& from, Index left) {
    if (left >= kCount) {
        store_pack(to, from);
    } else {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
            if (k < left) to[k] = from.at[k];
        }
    }
}
"""

STREAM = """
// As store_pack, for what is not read soon: it leaves the caches before what is.
template <typename T, int kCount>
__device__ __forceinline__ void stream_pack(T* to, const Pack<T, kCount>& from) {
    if constexpr (sizeof(from) % 16 == 0) {
#pragma unroll
        for (int part = 0; part < static_cast<int>(sizeof(from) / 16); ++part) {
            __stcs(reinterpret_cast<uint4*>(to) + part, reinterpret_cast<const uint4*>(&from)[part]);
        }
    } else if constexpr (kCount == 1 && sizeof(T) == 4) {
        __stcs(reinterpret_cast<unsigned*>(to), reinterpret_cast<const unsigned&>(from));
    } else {
        store_pack(to, from);
    }
}
"""

ADD_F32 = """
// Adds to kCount elements in memory side by side, four at once where the device can.
template <int kCount>
__device__ __forceinline__ void add_pack(float* to, const Pack<float, kCount>& from) {
#if __CUDA_ARCH__ >= 900
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
        const float4 four = make_float4(from.at[k], from.at[k + 1], from.at[k + 2], from.at[k + 3]);
        atomicAdd(reinterpret_cast<float4*>(to + k), four);
    }
#else
#pragma unroll
    for (int k = 0; k < kCount; ++k) atomicAdd(to + k, from.at[k]);
#endif
}
"""


def add_halves(kind: str, pair: str) -> str:
    """The same of 16 bits, two at once."""
    return f"""
// Adds to kCount elements in memory side by side, two at once.
template <int kCount>
__device__ __forceinline__ void add_pack({kind}* to, const Pack<{kind}, kCount>& from) {{
#pragma unroll
    for (int k = 0; k < kCount; k += 2) {{
        {pair} two;
        two.x = from.at[k];
        two.y = from.at[k + 1];
        atomicAdd(reinterpret_cast<{pair}*>(to + k), two);
    }}
}}
"""


JOINED = {"sum": "{a} + {b}", "prod": "{a} * {b}", "max": "max_of({a}, {b})", "min": "min_of({a}, {b})", "any":
             "{a} || {b}", "all": "{a} && {b}", "shifted": "shifted_of({a}, {b})"}  # fmt: skip
"""How two values meet, by reduction; "shifted" is a maximum with the sum of exponentials below it."""
MEETING = {"max": ("max_of",), "min": ("min_of",), "shifted": ("shifted_of",)}
"""The function that lets them."""


def row_reduction(op: str) -> str:
    """All lanes of a row get the result."""
    over_lanes = JOINED[op].format(a="value", b="other")
    over_warps = JOINED[op].format(a="value", b="partial[warp]")
    return f"""
// All kLanes threads that share a row get the {op} of their values.
template <int kLanes, typename T>
__device__ __forceinline__ T row_{op}(T value) {{
#pragma unroll
    for (int offset = kLanes < 32 ? kLanes / 2 : 16; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = {over_lanes};
    }}
    if constexpr (kLanes > 32) {{
        __shared__ T partial[kLanes / 32];
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
        __syncthreads();
        value = partial[0];
#pragma unroll
        for (int warp = 1; warp < kLanes / 32; ++warp) value = {over_warps};
        __syncthreads();  // the next reduction may write to `partial`
    }}
    return value;
}}
"""


def row_place(op: str) -> str:
    """All lanes of a row get the greatest or least value and the lowest index that has it; a NaN wins."""
    sign = ">" if op == "argmax" else "<"
    wins = f"other {sign} value || (other != other && value == value) || is_same"
    same = "(other == value || (other != other && value != value)) && other_place < place"
    test = wins
    return f"""
// All kLanes threads that share a row get the value that wins and its place: of equal ones the lowest; a NaN wins.
template <int kLanes, typename T>
__device__ __forceinline__ void row_{op}(T& value, long long& place) {{
    const auto meet = [&](T other, long long other_place) {{
        const bool is_same = {same};
        if ({test}) {{
            value = other;
            place = other_place;
        }}
    }};
#pragma unroll
    for (int offset = kLanes < 32 ? kLanes / 2 : 16; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, value, offset);
        meet(other, __shfl_xor_sync(0xffffffffu, place, offset));
    }}
    if constexpr (kLanes > 32) {{
        __shared__ T values[kLanes / 32];
        __shared__ long long places[kLanes / 32];
        if (threadIdx.x % 32 == 0) {{
            values[threadIdx.x / 32] = value;
            places[threadIdx.x / 32] = place;
        }}
        __syncthreads();
#pragma unroll
        for (int warp = 0; warp < kLanes / 32; ++warp) meet(values[warp], places[warp]);
        __syncthreads();
    }}
}}
"""


TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Pack": (PACK, ()),
    "load_pack": (LOAD, ("Pack",)),
    "store_pack": (STORE, ("Pack",)),
    "load_some": (LOAD_SOME, ("Pack", "load_pack")),
    "store_some": (STORE_SOME, ("Pack", "store_pack")),
    "add_pack_f32": (ADD_F32, ("Pack",)),
    "add_pack_f16": (add_halves("__half", "__half2"), ("Pack",)),
    "add_pack_bf16": (add_halves("__nv_bfloat16", "__nv_bfloat162"), ("Pack",)),
    "stream_pack": (STREAM, ("Pack", "store_pack")),
    **{f"row_{op}": (row_reduction(op), MEETING.get(op, ())) for op in JOINED},
    **{f"row_{op}": (row_place(op), ()) for op in ("argmax", "argmin")},
}
"""The text of each, and what it calls."""
