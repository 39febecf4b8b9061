"""Functions on the device that read and write rows of neighbours."""

from __future__ import annotations

_LOAD = """
// near[k] = from[k - kLead], by packs of kVector elements, of which one begins at `from`. Where a single element of a
// pack is wanted, that alone is read.
template <int kVector, int kLead, typename Held, typename T, int kCount>
__device__ __forceinline__ void load_near(Held (&near)[kCount], const T* from) {
    constexpr int kBegin = -((kLead + kVector - 1) / kVector * kVector);
#pragma unroll
    for (int pack = kBegin; pack < kCount - kLead; pack += kVector) {
        const int first = pack + kLead < 0 ? 0 : pack + kLead;
        const int end = pack + kLead + kVector < kCount ? pack + kLead + kVector : kCount;
        if (end - first == 1) {
            near[first] = static_cast<Held>(from[first - kLead]);
        } else {
            const Pack<T, kVector> some = load_pack<kVector>(from + pack);
#pragma unroll
            for (int k = first; k < end; ++k) near[k] = static_cast<Held>(some.at[k - pack - kLead]);
        }
    }
}
"""

_LOAD_INSIDE = """
// As load_near of a row with `count` elements, of which `from` is number `at`; beyond its ends `outside` is read.
template <int kVector, int kLead, typename Held, typename T, int kCount>
__device__ __forceinline__ void load_inside(Held (&near)[kCount], const T* from, int at, int count, Held outside) {
    constexpr int kBegin = -((kLead + kVector - 1) / kVector * kVector);
#pragma unroll
    for (int pack = kBegin; pack < kCount - kLead; pack += kVector) {
        const int first = pack + kLead < 0 ? 0 : pack + kLead;
        const int end = pack + kLead + kVector < kCount ? pack + kLead + kVector : kCount;
        if (end - first > 1 && at + pack >= 0 && at + pack + kVector <= count) {
            const Pack<T, kVector> some = load_pack<kVector>(from + pack);
#pragma unroll
            for (int k = first; k < end; ++k) near[k] = static_cast<Held>(some.at[k - pack - kLead]);
        } else {
#pragma unroll
            for (int k = first; k < end; ++k) {
                const bool is_there = at + k >= kLead && at + k - kLead < count;
                near[k] = is_there ? static_cast<Held>(from[k - kLead]) : outside;
            }
        }
    }
}
"""

_STORE = """
// Writes a row's elements by packs of kVector; at its end, where fewer are left, those alone.
template <int kVector, typename T, int kCount>
__device__ __forceinline__ void store_near(T* to, const T (&from)[kCount], int left) {
#pragma unroll
    for (int first = 0; first < kCount; first += kVector) {
        if (kVector > 1 && first + kVector <= left) {
            Pack<T, kVector> some;
#pragma unroll
            for (int k = 0; k < kVector; ++k) some.at[k] = from[first + k];
            store_pack(to + first, some);
        } else {
#pragma unroll
            for (int k = first; k < first + kVector; ++k) {
                if (k < left) to[k] = from[k];
            }
        }
    }
}
"""

WINDOW_HELPERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "load_near": (_LOAD, ("Pack", "load_pack")),
    "load_inside": (_LOAD_INSIDE, ("Pack", "load_pack")),
    "store_near": (_STORE, ("Pack", "store_pack")),
}
"""The text of each, and what it calls."""
