"""Functions on the device with which running values pass from lane to lane, warp to warp, block to block."""

from __future__ import annotations

from warpwright.writer.lanes import JOINED, MEETING, joins

PART = """
// The number of the next part, in the order in which blocks begin: those in front are under way, so that it is safe to
// wait for them.
__device__ __forceinline__ int next_part(int* counter) {
    __shared__ int part;
    if (threadIdx.x == 0) part = atomicAdd(counter, 1);
    __syncthreads();
    return part;
}
"""

TOLD = """
// Lets other blocks know that what this thread, or its warp before a barrier, has written can be read.
__device__ __forceinline__ void tell(int* flag) {
    __threadfence();
    *const_cast<volatile int*>(flag) = 1;
}
"""

WAITED = """
// Waits until another block has told.
__device__ __forceinline__ void wait_for(const int* flag) {
    while (*const_cast<const volatile int*>(flag) == 0) {}
    __threadfence();
}
"""

FRESH = """
// What another block has written, past the first-level cache.
template <typename T>
__device__ __forceinline__ T fresh(const T* place) {
    return *const_cast<const volatile T*>(place);
}
"""


SHIFTED = """
// The largest of some values, and the sum of exp(value - most).
template <typename T>
struct Shifted {
    T most;
    T sum;
};

template <typename T>
__device__ __forceinline__ Shifted<T> shifted_of(const Shifted<T>& a, const Shifted<T>& b) {
    const T most = max_of(a.most, b.most);
    // Of equal maxima, infinite ones among them, nothing is scaled.
    const T own = a.most == most ? a.sum : a.sum * exp(a.most - most);
    const T other = b.most == most ? b.sum : b.sum * exp(b.most - most);
    return {most, own + other};
}

// Lanes hand on pairs as they do numbers.
using ::__shfl_sync;
using ::__shfl_up_sync;
using ::__shfl_xor_sync;

template <typename T>
__device__ __forceinline__ Shifted<T> __shfl_sync(unsigned mask, const Shifted<T>& value, int lane) {
    return {__shfl_sync(mask, value.most, lane), __shfl_sync(mask, value.sum, lane)};
}

template <typename T>
__device__ __forceinline__ Shifted<T> __shfl_up_sync(unsigned mask, const Shifted<T>& value, int offset) {
    return {__shfl_up_sync(mask, value.most, offset), __shfl_up_sync(mask, value.sum, offset)};
}

template <typename T>
__device__ __forceinline__ Shifted<T> __shfl_xor_sync(unsigned mask, const Shifted<T>& value, int offset) {
    return {__shfl_xor_sync(mask, value.most, offset), __shfl_xor_sync(mask, value.sum, offset)};
}

template <typename T>
__device__ __forceinline__ Shifted<T> fresh(const Shifted<T>* place) {
    return {fresh(&place->most), fresh(&place->sum)};
}
"""


def over_lanes(op: str) -> str:
    """Each lane gets what those in front give together."""
    lanes = JOINED[op].format(a="other", b="value")
    front = JOINED[op].format(a="so_far", b="previous")
    whole = joins(op, "so_far", "last")
    return f"""
// The {op} of `so_far` and of what the lanes in front have in `value`; `so_far` becomes that of all lanes.
template <typename T>
__device__ __forceinline__ T running_lanes_{op}(T value, T& so_far) {{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {{
        const T other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value = {lanes};
    }}
    const T previous = __shfl_up_sync(0xffffffffu, value, 1);
    const T last = __shfl_sync(0xffffffffu, value, 31);
    const T front = lane == 0 ? so_far : {front};
    {whole};
    return front;
}}
"""


def over_warps(op: str) -> str:
    """Each warp gets what those in front give together."""
    joined = joins(op, "so_far", "totals[each]")
    alone = joins(op, "so_far", "value")
    return f"""
// As running_lanes_{op}, of the kWarps warps that share a row; `value` is the same for all lanes of a warp.
template <int kWarps, typename T>
__device__ __forceinline__ T running_warps_{op}(T value, T& so_far) {{
    T front = so_far;
    if constexpr (kWarps == 1) {{
        {alone};
    }} else {{
        __shared__ T totals[kWarps];
        const int warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) totals[warp] = value;
        __syncthreads();
#pragma unroll
        for (int each = 0; each < kWarps; ++each) {{
            if (each == warp) front = so_far;
            {joined};
        }}
        __syncthreads();  // the next call may write to `totals`
    }}
    return front;
}}
"""


def over_parts(op: str) -> str:
    """Each block gets what those in front give together."""
    whole = JOINED[op].format(a="value", b="total")
    return f"""
// The {op} of what the parts of a row in front of `part` have in `total`. Each part tells its own; the last one of each
// kThreads tells, too, what all up to it give, so that each thread waits for one part. Whoever comes first, the order
// is the same. The last part of a row, number `parts`, has nobody to tell.
template <int kThreads, typename T>
__device__ __forceinline__ T running_parts_{op}(
        T start, T total, int part, int parts, T* totals, T* upto, int* ready) {{
    if (threadIdx.x == 0 && part < parts) {{
        totals[part] = total;
        tell(ready + part);
    }}
    __syncwarp();  // nobody waits before its own part has told
    const int first = part / kThreads * kThreads;
    const int other = first + threadIdx.x;
    T value = start;
    if (other < part) {{
        wait_for(ready + other);
        value = fresh(totals + other);
    }} else if (other == part && first > 0) {{
        wait_for(ready + parts + first - 1);
        value = fresh(upto + first - 1);
    }}
    value = row_{op}<kThreads>(value);
    if (threadIdx.x == 0 && part == first + kThreads - 1 && part < parts) {{
        upto[part] = {whole};
        tell(ready + parts + part);
    }}
    return value;
}}
"""


def over_column_warps(op: str) -> str:
    """The same for columns: each thread has kVector of them, and each warp rows of its own."""
    joined = JOINED[op].format(a="so_far", b="totals[each][k][lane]")
    return f"""
// Of each column the {op} of what the warps in front have in `value`; `whole` becomes that of all warps.
template <int kWarps, int kVector, typename T>
__device__ __forceinline__ void running_columns_{op}(
        T start, const T (&value)[kVector], T (&front)[kVector], T (&whole)[kVector]) {{
    __shared__ T totals[kWarps][kVector][32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int k = 0; k < kVector; ++k) totals[warp][k][lane] = value[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kVector; ++k) {{
        T so_far = start;
#pragma unroll
        for (int each = 0; each < kWarps; ++each) {{
            if (each == warp) front[k] = so_far;
            so_far = {joined};
        }}
        whole[k] = so_far;
    }}
    __syncthreads();  // the next call may write to `totals`
}}
"""


def over_column_parts(op: str) -> str:
    """The same between blocks."""
    value = JOINED[op].format(a="value[k]", b="fresh(totals + each * columns + k)")
    group = JOINED[op].format(a="fresh(upto + (first - 1) * columns + k)", b="value[k]")
    whole = JOINED[op].format(a="front[k]", b="total[k]")
    return f"""
// As running_parts_{op}, for kVector columns of each lane.
template <int kWarps, int kVector, typename T>
__device__ __forceinline__ void running_column_parts_{op}(
        T start, const T (&total)[kVector], T (&front)[kVector], bool is_inside, int part, int parts, long long columns,
        T* totals, T* upto, int* ready) {{
    constexpr int kGroup = kWarps == 1 ? 32 : 64;
    const int warp = threadIdx.x / 32;
    if (warp == 0 && part < parts) {{
#pragma unroll
        for (int k = 0; k < kVector; ++k) {{
            if (is_inside) totals[part * columns + k] = total[k];
        }}
        __syncwarp();
        if (threadIdx.x == 0) tell(ready + part);
        __syncwarp();  // nobody waits before its own part has told
    }}
    const int first = part / kGroup * kGroup;
    const int other = first + threadIdx.x;
    if (other < part) wait_for(ready + other);
    if (other == part && first > 0) wait_for(ready + parts + first - 1);
    __syncthreads();
    T value[kVector];
#pragma unroll
    for (int k = 0; k < kVector; ++k) value[k] = start;
#pragma unroll 4
    for (int each = first + warp; each < part; each += kWarps) {{
#pragma unroll
        for (int k = 0; k < kVector; ++k) {{
            if (is_inside) value[k] = {value};
        }}
    }}
#pragma unroll
    for (int k = 0; k < kVector; ++k) {{
        if (warp == 0 && first > 0 && is_inside) value[k] = {group};
    }}
    T unused[kVector];
    running_columns_{op}<kWarps>(start, value, unused, front);
    if (warp == 0 && part == first + kGroup - 1 && part < parts) {{
#pragma unroll
        for (int k = 0; k < kVector; ++k) {{
            if (is_inside) upto[part * columns + k] = {whole};
        }}
        __syncwarp();
        if (threadIdx.x == 0) tell(ready + parts + part);
    }}
}}
"""


def _needs(op: str, *others: str) -> tuple[str, ...]:
    return (*MEETING.get(op, ()), *others)


RUNNING: dict[str, tuple[str, tuple[str, ...]]] = {
    "shifted_of": (SHIFTED, ("max_of", "fresh")),
    "next_part": (PART, ()),
    "tell": (TOLD, ()),
    "wait_for": (WAITED, ()),
    "fresh": (FRESH, ()),
    **{f"running_lanes_{op}": (over_lanes(op), _needs(op)) for op in JOINED},
    **{f"running_warps_{op}": (over_warps(op), _needs(op)) for op in JOINED},
    **{f"running_parts_{op}": (over_parts(op), _needs(op, "tell", "wait_for", "fresh", f"row_{op}")) for op in JOINED},
    **{f"running_columns_{op}": (over_column_warps(op), _needs(op)) for op in JOINED},
    **{
        f"running_column_parts_{op}": (
            over_column_parts(op),
            _needs(op, "tell", "wait_for", "fresh", f"running_columns_{op}"),
        )
        for op in JOINED
    },
}
"""The text of each, and what it calls."""
