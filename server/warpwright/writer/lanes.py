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

STORE_GLOBAL = """
// As store_pack, to global memory, by 16 bytes at once: of an assignment the compiler makes smaller stores where it
// unrolls a loop.
template <typename T, int kCount>
__device__ __forceinline__ void store_global(T* to, const Pack<T, kCount>& from) {
    if constexpr (sizeof(from) % 16 == 0) {
#pragma unroll
        for (int part = 0; part < static_cast<int>(sizeof(from) / 16); ++part) {
            __stwb(reinterpret_cast<uint4*>(to) + part, reinterpret_cast<const uint4*>(&from)[part]);
        }
    } else {
        store_pack(to, from);
    }
}
"""

COPY = """
// From global to shared memory without a detour through registers, where a pack is large enough for it.
template <int kCount, typename T>
__device__ __forceinline__ void copy_pack(T* to, const T* from) {
    constexpr int kBytes = sizeof(T) * kCount;
    if constexpr (kBytes < 4) {
        store_pack(to, load_pack<kCount>(from));
    } else {
        constexpr int kPart = kBytes < 16 ? kBytes : 16;
#pragma unroll
        for (int at = 0; at < kBytes; at += kPart) {
            __pipeline_memcpy_async(reinterpret_cast<char*>(to) + at, reinterpret_cast<const char*>(from) + at, kPart);
        }
    }
}
"""

LOAD_EACH = """
// As load_pack, from anywhere.
template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> load_each(const T* from) {
    Pack<T, kCount> pack;
#pragma unroll
    for (int k = 0; k < kCount; ++k) pack.at[k] = from[k];
    return pack;
}
"""

LOAD_SHIFTED = """
// The pack at `first` of an array of `end` elements, put together from the two whole packs in which it lies: element by
// element the cache would be asked kCount times.
template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> load_shifted(const T* array, int first, int end) {
    const int over = first % kCount;
    if (over == 0) return load_pack<kCount>(array + first);
    if (sizeof(T) * kCount < 4 || first - over + 2 * kCount > end) return load_each<kCount>(array + first);
    constexpr int kWords = sizeof(T) * kCount < 4 ? 1 : sizeof(T) * kCount / 4;
    struct alignas(16) {
        unsigned at[2 * kWords];
    } words;
    reinterpret_cast<Pack<T, kCount>*>(&words)[0] = load_pack<kCount>(array + first - over);
    reinterpret_cast<Pack<T, kCount>*>(&words)[1] = load_pack<kCount>(array + first - over + kCount);
    const unsigned bytes = over * sizeof(T);
#pragma unroll
    for (int step = kWords / 2; step > 0; step /= 2) {
#pragma unroll
        for (int word = 0; word + step < 2 * kWords; ++word) {
            if (bytes & (4 * step)) words.at[word] = words.at[word + step];
        }
    }
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
        words.at[word] = __funnelshift_r(words.at[word], words.at[word + 1], 8 * (bytes % 4));
    }
    return reinterpret_cast<const Pack<T, kCount>&>(words);
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


_WORDS = {"sum": "the sum of their values", "prod": "the product of their values", "max": "the maximum of their values",
          "min": "the minimum of their values", "any": "whether any of their values holds", "all":
          "whether all of their values hold", "shifted": "the pair that their values make"}  # fmt: skip


def joins(op: str, value: str, other: str) -> str:
    """A statement that joins another value to one.

    >>> joins("sum", "a", "b"), joins("any", "a", "b")
    ('a += b', 'a = a || b')
    """
    sign = {"sum": "+", "prod": "*"}.get(op)
    return f"{value} {sign}= {other}" if sign else f"{value} = {JOINED[op].format(a=value, b=other)}"


def row_reduction(op: str) -> str:
    """All lanes of a row get the result. `kUse` numbers the calls in a kernel."""
    over_lanes, over_warps = joins(op, "value", "other"), joins(op, "value", "partial[warp]")
    return f"""
// All kLanes threads that share a row get {_WORDS[op]}.
// kUse numbers the calls in a kernel: each has shared memory of its own, so that none waits for another's readers.
template <int kLanes, int kUse = 0, typename T>
__device__ __forceinline__ T row_{op}(T value) {{
#pragma unroll
    for (int offset = kLanes < 32 ? kLanes / 2 : 16; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, value, offset);
        {over_lanes};
    }}
    if constexpr (kLanes > 32) {{
        __shared__ T partial[kLanes / 32];
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
        __syncthreads();
        value = partial[0];
#pragma unroll
        for (int warp = 1; warp < kLanes / 32; ++warp) {over_warps};
    }}
    return value;
}}
"""


def better_place(op: str) -> str:
    """Of two values and their places the better one."""
    sign = ">" if op == "argmax" else "<"
    return f"""
// `other` and its place instead of `value` where it wins: of equal ones the lowest place does, and a NaN does.
template <typename T, typename Place>
__device__ __forceinline__ void better_{op}(T& value, Place& place, T other, Place other_place) {{
    const bool is_same = (other == value || (other != other && value != value)) && other_place < place;
    if (other {sign} value || (other != other && value == value) || is_same) {{
        value = other;
        place = other_place;
    }}
}}
"""


def row_place(op: str) -> str:
    """All lanes of a row get the greatest or least value and the lowest index that has it; a NaN wins."""
    return f"""
// All kLanes threads that share a row get the value that wins and its place. Each kUse has shared memory of its own.
template <int kLanes, int kUse = 0, typename T, typename Place>
__device__ __forceinline__ void row_{op}(T& value, Place& place) {{
#pragma unroll
    for (int offset = kLanes < 32 ? kLanes / 2 : 16; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, value, offset);
        better_{op}(value, place, other, __shfl_xor_sync(0xffffffffu, place, offset));
    }}
    if constexpr (kLanes > 32) {{
        __shared__ T values[kLanes / 32];
        __shared__ Place places[kLanes / 32];
        if (threadIdx.x % 32 == 0) {{
            values[threadIdx.x / 32] = value;
            places[threadIdx.x / 32] = place;
        }}
        __syncthreads();
#pragma unroll
        for (int warp = 0; warp < kLanes / 32; ++warp) better_{op}(value, place, values[warp], places[warp]);
    }}
}}
"""


TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Pack": (PACK, ()),
    "load_pack": (LOAD, ("Pack",)),
    "store_pack": (STORE, ("Pack",)),
    "store_global": (STORE_GLOBAL, ("Pack", "store_pack")),
    "load_each": (LOAD_EACH, ("Pack",)),
    "load_shifted": (LOAD_SHIFTED, ("Pack", "load_pack", "load_each")),
    "copy_pack": (COPY, ("Pack", "load_pack", "store_pack")),
    "load_some": (LOAD_SOME, ("Pack", "load_pack")),
    "store_some": (STORE_SOME, ("Pack", "store_pack")),
    "add_pack_f32": (ADD_F32, ("Pack",)),
    "add_pack_f16": (add_halves("__half", "__half2"), ("Pack",)),
    "add_pack_bf16": (add_halves("__nv_bfloat16", "__nv_bfloat162"), ("Pack",)),
    "stream_pack": (STREAM, ("Pack", "store_pack")),
    **{f"row_{op}": (row_reduction(op), MEETING.get(op, ())) for op in JOINED},
    **{f"better_{op}": (better_place(op), ()) for op in ("argmax", "argmin")},
    **{f"row_{op}": (row_place(op), (f"better_{op}",)) for op in ("argmax", "argmin")},
}
"""The text of each, and what it calls."""
