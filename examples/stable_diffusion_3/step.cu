// step, in this order, with arrays and sizes as they stand for each other:
//   step_add_1(image, image_mod, add_1, 8, 1024, 1536)
//   step_add_3(text, text_mod, add_3, 8, 333, 1536)
//   step_linear_product(add_1, w_q, linear_product, 8, 1024, 1536)
//   step_linear_product(add_3, text_w_q, linear_1_product, 8, 333, 1536)
//   step_linear_product(add_1, w_k, linear_2_product, 8, 1024, 1536)
//   step_linear_product(add_3, text_w_k, linear_3_product, 8, 333, 1536)
//   step_linear_product(add_1, w_v, linear_4_product, 8, 1024, 1536)
//   step_linear_product(add_3, text_w_v, linear_5_product, 8, 333, 1536)
//   step_attention_q(linear_product, b_q, linear_1_product, text_b_q, attention_q, 8)
//   step_attention_q(linear_2_product, b_k, linear_3_product, text_b_k, attention_k, 8)
//   step_attention_q(linear_4_product, b_v, linear_5_product, text_b_v, attention_v, 8)
//   step_attention(attention_v, attention_q, attention_k, attention, 8, 24, 1357)
//   step_linear_6_left(attention, linear_6_left, 8, 24)
//   step_add_4(image, image_mod, b_o, linear_6_left, w_o, add_4, 8, 1024, 1536)
//   step_linear_7_left(add_4, image_mod, linear_7_left, 8, 1024, 1536)
//   step_linear_8_left(b_up, linear_7_left, w_up, linear_8_left, 6144, 8, 1024, 1536)
//   step_layer_norm_3_in(add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, 8, 1024, 1536, 6144)
//   step_add_3(layer_norm_3_in, last_mod, linear_9_left, 8, 1024, 1536)
//   step_linear_9_product(linear_9_left, w_last, linear_9_product, 8, 1024, 1536)
//   step_out(latents, linear_9_product, b_last, sigma_step, guidance, out)

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <initializer_list>

namespace {

template <typename T>
__device__ __forceinline__ T square(T x) {
    return x * x;
}

template <typename T>
__device__ __forceinline__ T gelu_tanh(T x) {
    return T(0.5) * x * (T(1) + tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
}

// For results of 16 bits or less: (1 + tanh(v / 2)) / 2 is 1 / (1 + exp(-v)). Within 2^-20 |x|.
__device__ __forceinline__ float fast_gelu_tanh(float x) {
    const float v = 1.5957691f * (x + 0.044715f * x * x * x);
    return __fdividef(x, 1.0f + __expf(-v));
}

// kCount elements that are read and written at once, by up to 16 bytes.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
    T at[kCount];
};

template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> load_pack(const T* from) {
    return *reinterpret_cast<const Pack<T, kCount>*>(from);
}

template <typename T, int kCount>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kCount>& from) {
    *reinterpret_cast<Pack<T, kCount>*>(to) = from;
}

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

// All kLanes threads that share a row get the sum of their values.
// kUse numbers the calls in a kernel: each has shared memory of its own, so that none waits for another's readers.
template <int kLanes, int kUse = 0, typename T>
__device__ __forceinline__ T row_sum(T value) {
#pragma unroll
    for (int offset = kLanes < 32 ? kLanes / 2 : 16; offset > 0; offset /= 2) {
        const T other = __shfl_xor_sync(0xffffffffu, value, offset);
        value += other;
    }
    if constexpr (kLanes > 32) {
        __shared__ T partial[kLanes / 32];
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
        __syncthreads();
        value = partial[0];
#pragma unroll
        for (int warp = 1; warp < kLanes / 32; ++warp) value += partial[warp];
    }
    return value;
}

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

[[maybe_unused]] __device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

[[maybe_unused]] __device__ __forceinline__ void load_matrices_turned(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// What wgmma is told of an operand in shared memory: rows of 128 bytes, whose pieces of 16 are permuted by the row; the
// next eight rows after 1024 bytes; of a turned operand the next 64 columns after 64 rows.
[[maybe_unused]] __device__ __forceinline__ unsigned long long matrix_descriptor(unsigned at) {
    constexpr unsigned long long kSwizzle128 = 1ull << 62;
    return kSwizzle128 | (1024ull >> 4) << 32 | (64 * 128ull >> 4) << 16 | (at & 0x3ffff) >> 4;
}

template <int kTurnedA, int kTurnedB>
__device__ __forceinline__ void wgmma_f16(float (&d)[16][4], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, 1, 1, 1, %66, %67;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
                   "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
                   "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                   "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
                   "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
                   "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
                   "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
                   "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
                 : "l"(a), "l"(b), "n"(kTurnedA), "n"(kTurnedB)
                 : "memory");
}

template <int kTurnedA, int kTurnedB>
__device__ __forceinline__ void wgmma_f16(float (&d)[32][4], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                 "}, %128, %129, 1, 1, 1, %130, %131;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
                   "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
                   "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                   "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
                   "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
                   "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
                   "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
                   "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3]),
                   "+f"(d[16][0]), "+f"(d[16][1]), "+f"(d[16][2]), "+f"(d[16][3]), "+f"(d[17][0]), "+f"(d[17][1]), "+f"(d[17][2]), "+f"(d[17][3]),
                   "+f"(d[18][0]), "+f"(d[18][1]), "+f"(d[18][2]), "+f"(d[18][3]), "+f"(d[19][0]), "+f"(d[19][1]), "+f"(d[19][2]), "+f"(d[19][3]),
                   "+f"(d[20][0]), "+f"(d[20][1]), "+f"(d[20][2]), "+f"(d[20][3]), "+f"(d[21][0]), "+f"(d[21][1]), "+f"(d[21][2]), "+f"(d[21][3]),
                   "+f"(d[22][0]), "+f"(d[22][1]), "+f"(d[22][2]), "+f"(d[22][3]), "+f"(d[23][0]), "+f"(d[23][1]), "+f"(d[23][2]), "+f"(d[23][3]),
                   "+f"(d[24][0]), "+f"(d[24][1]), "+f"(d[24][2]), "+f"(d[24][3]), "+f"(d[25][0]), "+f"(d[25][1]), "+f"(d[25][2]), "+f"(d[25][3]),
                   "+f"(d[26][0]), "+f"(d[26][1]), "+f"(d[26][2]), "+f"(d[26][3]), "+f"(d[27][0]), "+f"(d[27][1]), "+f"(d[27][2]), "+f"(d[27][3]),
                   "+f"(d[28][0]), "+f"(d[28][1]), "+f"(d[28][2]), "+f"(d[28][3]), "+f"(d[29][0]), "+f"(d[29][1]), "+f"(d[29][2]), "+f"(d[29][3]),
                   "+f"(d[30][0]), "+f"(d[30][1]), "+f"(d[30][2]), "+f"(d[30][3]), "+f"(d[31][0]), "+f"(d[31][1]), "+f"(d[31][2]), "+f"(d[31][3])
                 : "l"(a), "l"(b), "n"(kTurnedA), "n"(kTurnedB)
                 : "memory");
}

[[maybe_unused]] __device__ __forceinline__ void mma_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                          unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2 to the x, with an error of 2 units in the last place.
__device__ __forceinline__ float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned packed_f16(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

// kLanes threads share a row, of which each keeps up to kPerLane packs of kVector elements in registers.
// To ask for one block per multiprocessor leaves the compiler the registers that keep it from spilling.
template <int kLanes, int kRows, int kPerLane, int kVector>
__global__ void __launch_bounds__(kLanes * kRows, 1) step_add_1_rows(
        const __half* __restrict__ image, const __half* __restrict__ image_mod, __half* __restrict__ add_1,
        int image_size0, int image_size1, int image_size2) {
    // Threads beyond the last row have no columns; they stay, as shuffles need all lanes of a warp.
    const int lane = threadIdx.x % kLanes;
    const long long wanted = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / kLanes;
    const bool is_row = wanted < image_size0 * image_size1;
    const long long own_row = is_row ? wanted : image_size0 * image_size1 - 1;
    const int columns = is_row ? image_size2 : 0;
    const long long i = own_row / image_size1;
    const __half* const image_row = image + own_row * image_size2;
    const __half* const image_mod_row = image_mod + i * image_size2 * 6 + image_size2;
    const __half* const image_mod_row_ = image_mod + i * image_size2 * 6;
    __half* const add_1_row = add_1 + own_row * image_size2;

    // The row is read once and stays in registers.
    Pack<__half, kVector> image_kept[kPerLane];
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
            image_kept[n] = load_pack<kVector>(image_row + first);
        }
    }

    float layer_norm_mean_sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_mean_sum += __half2float(image_kept[n].at[m]);
            }
        }
    }
    layer_norm_mean_sum = row_sum<kLanes>(layer_norm_mean_sum);

    const float layer_norm_mean = layer_norm_mean_sum / static_cast<float>(image_size2);
    float layer_norm_var_squares = 0.0f;
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_var_squares += square(__half2float(image_kept[n].at[m]) - layer_norm_mean);
            }
        }
    }
    layer_norm_var_squares = row_sum<kLanes, 1>(layer_norm_var_squares);

    const float layer_norm_var = layer_norm_var_squares / static_cast<float>(image_size2);
    const float scale = rsqrtf(layer_norm_var + 1e-6f);
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
            const Pack<__half, kVector> image_mod_pack = load_pack<kVector>(image_mod_row + first);
            const Pack<__half, kVector> image_mod_row__pack = load_pack<kVector>(image_mod_row_ + first);
            Pack<__half, kVector> add_1_pack;
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                add_1_pack.at[m] = __float2half((__half2float(image_kept[n].at[m]) - layer_norm_mean) * scale *
                        (__half2float(image_mod_pack.at[m]) + 1.0f) + __half2float(image_mod_row__pack.at[m]));
            }
            store_global(add_1_row + first, add_1_pack);
        }
    }
}

// A block for each row: shared memory keeps it.
template <int kLanes, int kVector>
__global__ void __launch_bounds__(kLanes) step_add_1_shared_rows(
        const __half* __restrict__ image, const __half* __restrict__ image_mod, __half* __restrict__ add_1,
        int image_size0, int image_size1, int image_size2) {
    const int lane = threadIdx.x;
    const long long own_row = blockIdx.x;
    const long long i = own_row / image_size1;
    const __half* const image_row = image + own_row * image_size2;
    const __half* const image_mod_row = image_mod + i * image_size2 * 6 + image_size2;
    const __half* const image_mod_row_ = image_mod + i * image_size2 * 6;
    __half* const add_1_row = add_1 + own_row * image_size2;
    extern __shared__ __align__(16) unsigned char kept_rows[];
    __half* const image_kept = reinterpret_cast<__half*>(kept_rows);

    // The row is read once. A lane reads back what it copied itself: no barrier is needed.
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        copy_pack<kVector>(image_kept + first, image_row + first);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);

    float layer_norm_mean_sum = 0.0f;
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> image_pack = load_pack<kVector>(image_kept + first);
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            layer_norm_mean_sum += __half2float(image_pack.at[m]);
        }
    }
    layer_norm_mean_sum = row_sum<kLanes>(layer_norm_mean_sum);

    const float layer_norm_mean = layer_norm_mean_sum / static_cast<float>(image_size2);
    float layer_norm_var_squares = 0.0f;
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> image_pack = load_pack<kVector>(image_kept + first);
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            layer_norm_var_squares += square(__half2float(image_pack.at[m]) - layer_norm_mean);
        }
    }
    layer_norm_var_squares = row_sum<kLanes, 1>(layer_norm_var_squares);

    const float layer_norm_var = layer_norm_var_squares / static_cast<float>(image_size2);
    const float scale = rsqrtf(layer_norm_var + 1e-6f);
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> image_pack = load_pack<kVector>(image_kept + first);
        const Pack<__half, kVector> image_mod_pack = load_pack<kVector>(image_mod_row + first);
        const Pack<__half, kVector> image_mod_row__pack = load_pack<kVector>(image_mod_row_ + first);
        Pack<__half, kVector> add_1_pack;
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            add_1_pack.at[m] = __float2half((__half2float(image_pack.at[m]) - layer_norm_mean) * scale *
                    (__half2float(image_mod_pack.at[m]) + 1.0f) + __half2float(image_mod_row__pack.at[m]));
        }
        store_global(add_1_row + first, add_1_pack);
    }
}

// A block for each row: each pass reads it anew.
template <int kLanes, int kVector>
__global__ void __launch_bounds__(kLanes) step_add_1_long_rows(
        const __half* __restrict__ image, const __half* __restrict__ image_mod, __half* __restrict__ add_1,
        long long image_size0, long long image_size1, long long image_size2) {
    const int lane = threadIdx.x;
    for (long long own_row = blockIdx.x; own_row < image_size0 * image_size1; own_row += gridDim.x) {
        const long long i = own_row / image_size1;
        const __half* const image_row = image + own_row * image_size2;
        const __half* const image_mod_row = image_mod + i * image_size2 * 6 + image_size2;
        const __half* const image_mod_row_ = image_mod + i * image_size2 * 6;
        __half* const add_1_row = add_1 + own_row * image_size2;

        float layer_norm_mean_sum = 0.0f;
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> image_pack = load_pack<kVector>(image_row + first);
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_mean_sum += __half2float(image_pack.at[m]);
            }
        }
        layer_norm_mean_sum = row_sum<kLanes>(layer_norm_mean_sum);

        const float layer_norm_mean = layer_norm_mean_sum / static_cast<float>(image_size2);
        float layer_norm_var_squares = 0.0f;
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> image_pack = load_pack<kVector>(image_row + first);
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_var_squares += square(__half2float(image_pack.at[m]) - layer_norm_mean);
            }
        }
        layer_norm_var_squares = row_sum<kLanes, 1>(layer_norm_var_squares);

        const float layer_norm_var = layer_norm_var_squares / static_cast<float>(image_size2);
        const float scale = rsqrtf(layer_norm_var + 1e-6f);
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> image_pack = load_pack<kVector>(image_row + first);
            const Pack<__half, kVector> image_mod_pack = load_pack<kVector>(image_mod_row + first);
            const Pack<__half, kVector> image_mod_row__pack = load_pack<kVector>(image_mod_row_ + first);
            Pack<__half, kVector> add_1_pack;
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                add_1_pack.at[m] = __float2half((__half2float(image_pack.at[m]) - layer_norm_mean) * scale *
                        (__half2float(image_mod_pack.at[m]) + 1.0f) + __half2float(image_mod_row__pack.at[m]));
            }
            stream_pack(add_1_row + first, add_1_pack);
        }
    }
}

// kLanes threads share a row, of which each keeps up to kPerLane packs of kVector elements in registers.
// To ask for one block per multiprocessor leaves the compiler the registers that keep it from spilling.
template <int kLanes, int kRows, int kPerLane, int kVector>
__global__ void __launch_bounds__(kLanes * kRows, 1) step_add_3_rows(
        const __half* __restrict__ text, const __half* __restrict__ text_mod, __half* __restrict__ add_3,
        int image_size0, int text_size1, int image_size2) {
    // Threads beyond the last row have no columns; they stay, as shuffles need all lanes of a warp.
    const int lane = threadIdx.x % kLanes;
    const long long wanted = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / kLanes;
    const bool is_row = wanted < image_size0 * text_size1;
    const long long own_row = is_row ? wanted : image_size0 * text_size1 - 1;
    const int columns = is_row ? image_size2 : 0;
    const long long i = own_row / text_size1;
    const __half* const text_row = text + own_row * image_size2;
    const __half* const text_mod_row = text_mod + i * image_size2 * 2 + image_size2;
    const __half* const text_mod_row_ = text_mod + i * image_size2 * 2;
    __half* const add_3_row = add_3 + own_row * image_size2;

    // The row is read once and stays in registers.
    Pack<__half, kVector> text_kept[kPerLane];
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
            text_kept[n] = load_pack<kVector>(text_row + first);
        }
    }

    float layer_norm_1_mean_sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_1_mean_sum += __half2float(text_kept[n].at[m]);
            }
        }
    }
    layer_norm_1_mean_sum = row_sum<kLanes>(layer_norm_1_mean_sum);

    const float layer_norm_1_mean = layer_norm_1_mean_sum / static_cast<float>(image_size2);
    float layer_norm_1_var_squares = 0.0f;
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_1_var_squares += square(__half2float(text_kept[n].at[m]) - layer_norm_1_mean);
            }
        }
    }
    layer_norm_1_var_squares = row_sum<kLanes, 1>(layer_norm_1_var_squares);

    const float layer_norm_1_var = layer_norm_1_var_squares / static_cast<float>(image_size2);
    const float scale = rsqrtf(layer_norm_1_var + 1e-6f);
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
            const Pack<__half, kVector> text_mod_pack = load_pack<kVector>(text_mod_row + first);
            const Pack<__half, kVector> text_mod_row__pack = load_pack<kVector>(text_mod_row_ + first);
            Pack<__half, kVector> add_3_pack;
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                add_3_pack.at[m] = __float2half((__half2float(text_kept[n].at[m]) - layer_norm_1_mean) * scale *
                        (__half2float(text_mod_pack.at[m]) + 1.0f) + __half2float(text_mod_row__pack.at[m]));
            }
            store_global(add_3_row + first, add_3_pack);
        }
    }
}

// A block for each row: shared memory keeps it.
template <int kLanes, int kVector>
__global__ void __launch_bounds__(kLanes) step_add_3_shared_rows(
        const __half* __restrict__ text, const __half* __restrict__ text_mod, __half* __restrict__ add_3,
        int image_size0, int text_size1, int image_size2) {
    const int lane = threadIdx.x;
    const long long own_row = blockIdx.x;
    const long long i = own_row / text_size1;
    const __half* const text_row = text + own_row * image_size2;
    const __half* const text_mod_row = text_mod + i * image_size2 * 2 + image_size2;
    const __half* const text_mod_row_ = text_mod + i * image_size2 * 2;
    __half* const add_3_row = add_3 + own_row * image_size2;
    extern __shared__ __align__(16) unsigned char kept_rows[];
    __half* const text_kept = reinterpret_cast<__half*>(kept_rows);

    // The row is read once. A lane reads back what it copied itself: no barrier is needed.
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        copy_pack<kVector>(text_kept + first, text_row + first);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);

    float layer_norm_1_mean_sum = 0.0f;
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> text_pack = load_pack<kVector>(text_kept + first);
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            layer_norm_1_mean_sum += __half2float(text_pack.at[m]);
        }
    }
    layer_norm_1_mean_sum = row_sum<kLanes>(layer_norm_1_mean_sum);

    const float layer_norm_1_mean = layer_norm_1_mean_sum / static_cast<float>(image_size2);
    float layer_norm_1_var_squares = 0.0f;
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> text_pack = load_pack<kVector>(text_kept + first);
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            layer_norm_1_var_squares += square(__half2float(text_pack.at[m]) - layer_norm_1_mean);
        }
    }
    layer_norm_1_var_squares = row_sum<kLanes, 1>(layer_norm_1_var_squares);

    const float layer_norm_1_var = layer_norm_1_var_squares / static_cast<float>(image_size2);
    const float scale = rsqrtf(layer_norm_1_var + 1e-6f);
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> text_pack = load_pack<kVector>(text_kept + first);
        const Pack<__half, kVector> text_mod_pack = load_pack<kVector>(text_mod_row + first);
        const Pack<__half, kVector> text_mod_row__pack = load_pack<kVector>(text_mod_row_ + first);
        Pack<__half, kVector> add_3_pack;
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            add_3_pack.at[m] = __float2half((__half2float(text_pack.at[m]) - layer_norm_1_mean) * scale *
                    (__half2float(text_mod_pack.at[m]) + 1.0f) + __half2float(text_mod_row__pack.at[m]));
        }
        store_global(add_3_row + first, add_3_pack);
    }
}

// A block for each row: each pass reads it anew.
template <int kLanes, int kVector>
__global__ void __launch_bounds__(kLanes) step_add_3_long_rows(
        const __half* __restrict__ text, const __half* __restrict__ text_mod, __half* __restrict__ add_3,
        long long image_size0, long long text_size1, long long image_size2) {
    const int lane = threadIdx.x;
    for (long long own_row = blockIdx.x; own_row < image_size0 * text_size1; own_row += gridDim.x) {
        const long long i = own_row / text_size1;
        const __half* const text_row = text + own_row * image_size2;
        const __half* const text_mod_row = text_mod + i * image_size2 * 2 + image_size2;
        const __half* const text_mod_row_ = text_mod + i * image_size2 * 2;
        __half* const add_3_row = add_3 + own_row * image_size2;

        float layer_norm_1_mean_sum = 0.0f;
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> text_pack = load_pack<kVector>(text_row + first);
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_1_mean_sum += __half2float(text_pack.at[m]);
            }
        }
        layer_norm_1_mean_sum = row_sum<kLanes>(layer_norm_1_mean_sum);

        const float layer_norm_1_mean = layer_norm_1_mean_sum / static_cast<float>(image_size2);
        float layer_norm_1_var_squares = 0.0f;
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> text_pack = load_pack<kVector>(text_row + first);
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_1_var_squares += square(__half2float(text_pack.at[m]) - layer_norm_1_mean);
            }
        }
        layer_norm_1_var_squares = row_sum<kLanes, 1>(layer_norm_1_var_squares);

        const float layer_norm_1_var = layer_norm_1_var_squares / static_cast<float>(image_size2);
        const float scale = rsqrtf(layer_norm_1_var + 1e-6f);
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> text_pack = load_pack<kVector>(text_row + first);
            const Pack<__half, kVector> text_mod_pack = load_pack<kVector>(text_mod_row + first);
            const Pack<__half, kVector> text_mod_row__pack = load_pack<kVector>(text_mod_row_ + first);
            Pack<__half, kVector> add_3_pack;
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                add_3_pack.at[m] = __float2half((__half2float(text_pack.at[m]) - layer_norm_1_mean) * scale *
                        (__half2float(text_mod_pack.at[m]) + 1.0f) + __half2float(text_mod_row__pack.at[m]));
            }
            stream_pack(add_3_row + first, add_3_pack);
        }
    }
}

// linear_product[i, j, k] = sum[l] add_1[i, j, l] * w_q[k, l]
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that: built for sm_90a by wgmma, else by
// mma.sync. kStages slices of both operands are in shared memory or on their way to it. Rows of add_1 and w_q in memory are
// whole 16-byte words, if need be with zeros at their ends. kThroughL1: neighbours in a row share lines.
template <int kTileM, int kTileN, int kWarpM, int kWarpN, int kStages, int kBlocks, bool kThroughL1>
__global__ void __launch_bounds__(kTileM / kWarpM * (kTileN / kWarpN) * 32, kBlocks) step_linear_product_kernel(
        const __half* __restrict__ add_1, const __half* __restrict__ w_q, __half* __restrict__ linear_product,
        int image_size0, int image_size1, int image_size2) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, no GPU has the shared memory that a launch asks for
    constexpr int kTileK = 64;
    constexpr int kWord = 8;  // elements of linear_product in 16 bytes
    constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
    const int rows = image_size0 * image_size1;

    const int add_1_leading = (image_size2 + 7) / 8 * 8, w_q_leading = (image_size2 + 7) / 8 * 8;
    const int tile_rows = (rows + kTileM - 1) / kTileM;
    const int tile_cols = (image_size2 + kTileN - 1) / kTileN;
    const int tile = blockIdx.x;
    // Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
    const int band = tile / (8 * tile_cols) * 8;
    const int band_rows = min(tile_rows - band, 8);
    const int in_band = tile - band * tile_cols;
    const int first_row = (band + in_band % band_rows) * kTileM;
    const int first_col = in_band / band_rows * kTileN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A warpgroup computes pieces of 64 rows, each of its four warps 16 rows of one.
    constexpr int kPieces = kTileM * 128 / kThreads / 64, kCols = kTileN;
    constexpr int kApart = 64;  // rows between two pieces of a warp
    const int warp_row = warp / 4 * kPieces * 64 + warp % 4 * 16;
    const int warp_col = 0;
#else
    constexpr int kPieces = kWarpM / 16, kCols = kWarpN;  // pieces of 16 rows, and the columns of a warp
    constexpr int kApart = 16;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
#endif
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. Slices lie in rows of 128 bytes, whose 16-byte pieces are permuted by the row: eight rows
    // of one column are then in different banks. The rows of a thread are a multiple of 8 apart, so one permutation
    // serves them all. What lies beyond the last row or column is read from the last one: those sums are never stored.
    // Beyond the last image_size2 are zeros.
    constexpr int kCopies_add_1 = kTileM * kTileK / 8 / kThreads;
    constexpr int kApart_add_1 = kThreads / 8;  // rows of add_1 between two copies of a thread
    const int add_1_row = threadIdx.x / 8;
    const int add_1_depth = threadIdx.x % 8 * 8;
    const unsigned add_1_to = add_1_row * 128 + (threadIdx.x % 8 ^ (add_1_row & 7)) * 16;
    const __half* add_1_from[kCopies_add_1];
#pragma unroll
    for (int nth = 0; nth < kCopies_add_1; ++nth) {
        const long long row = min(first_row + add_1_row + nth * kApart_add_1, rows - 1);
        add_1_from[nth] = add_1 + row * add_1_leading + add_1_depth;
    }
    constexpr int kCopies_w_q = kTileN * kTileK / 8 / kThreads;
    constexpr int kApart_w_q = kThreads / 8;  // rows of w_q between two copies of a thread
    const int w_q_row = threadIdx.x / 8;
    const int w_q_depth = threadIdx.x % 8 * 8;
    const unsigned w_q_to = kBytesA + w_q_row * 128 + (threadIdx.x % 8 ^ (w_q_row & 7)) * 16;
    const __half* w_q_from[kCopies_w_q];
#pragma unroll
    for (int nth = 0; nth < kCopies_w_q; ++nth) {
        const long long row = min(first_col + w_q_row + nth * kApart_w_q, image_size2 - 1);
        w_q_from[nth] = w_q + row * w_q_leading + w_q_depth;
    }

    constexpr int kFetches = 4;  // parts of a slice, so that copies are spread over the products of another
    auto fetch = [&](int from, unsigned to, int fetched) {
#pragma unroll
        for (int nth = fetched * kCopies_add_1 / kFetches; nth < (fetched + 1) * kCopies_add_1 / kFetches; ++nth) {
            const unsigned place = to + add_1_to + nth * kApart_add_1 * 128;
            copy16<kThroughL1>(place, add_1_from[nth], from + add_1_depth < image_size2);
            add_1_from[nth] += kTileK;
        }
#pragma unroll
        for (int nth = fetched * kCopies_w_q / kFetches; nth < (fetched + 1) * kCopies_w_q / kFetches; ++nth) {
            const unsigned place = to + w_q_to + nth * kApart_w_q * 128;
            copy16<kThroughL1>(place, w_q_from[nth], from + w_q_depth < image_size2);
            w_q_from[nth] += kTileK;
        }
    };

    float sums[kPieces][kCols / 8][4] = {};
    const int slices = (image_size2 + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
    unsigned reading = shared_at;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
    for (int stage = 0; stage < kStages - 2; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 2) * kStageBytes;
    for (int slice = 0; slice < slices; ++slice) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the cache of generic stores
        __syncthreads();
        // The products of the slice before are still under way: all warps have left the one before that.
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
                const unsigned long long left =
                        matrix_descriptor(reading + (warp_row / 64 + down) * 64 * 128 + step * 2);
                const unsigned long long right = matrix_descriptor(reading + kBytesA + step * 2);
                wgmma_f16<0, 0>(sums[down], left, right);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, filling, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
        reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int down = 0; down < kPieces; ++down) {
#pragma unroll
        for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 4; ++part) asm volatile("" : "+f"(sums[down][along][part]));  // not read before
        }
    }
#else
    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
    const unsigned add_1_lane = (warp_row + lane % 16) * 128 + (lane / 16 ^ (lane & 7)) * 16;
    const int w_q_lane_row = warp_col + lane % 8 + lane / 16 * 8;
    const unsigned w_q_lane = kBytesA + w_q_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;

    unsigned left[2][kPieces][4];
    unsigned right[2][kCols / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            load_matrices(left[half][down], stage + (add_1_lane ^ step * 2) + down * 16 * 128);
        }
#pragma unroll
        for (int along = 0; along < kCols / 16; ++along) {
            load_matrices(right[half][along], stage + (w_q_lane ^ step * 2) + along * 16 * 128);
        }
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
                fetch(ahead, filling, step / 16);  // into the stage that all warps have left
            } else {
                fetch(ahead, filling, step / 16);
                asm volatile("cp.async.commit_group;");
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
#pragma unroll
                for (int along = 0; along < kCols / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_f16(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
    }
#endif

    if (image_size2 % kWord == 0 && reinterpret_cast<unsigned long long>(linear_product) % 16 == 0) {
        // By way of shared memory, so that a warp stores whole 16-byte words of few rows.
        constexpr int kPitch = kCols + 8;  // 8 more: no bank twice
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // slices are done with
        __half* const staged = reinterpret_cast<__half*>(shared) + warp * 16 * kPitch;
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            const int top = first_row + warp_row + down * kApart;
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    __half2* const to = reinterpret_cast<__half2*>(
                        &staged[(half * 8 + lane / 4) * kPitch + along * 8 + lane % 4 * 2]);
                    *to = __floats2half2_rn(sums[down][along][half * 2], sums[down][along][half * 2 + 1]);
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane * kWord; at < 16 * kCols; at += 32 * kWord) {
                const int row = top + at / kCols;
                const int col = first_col + warp_col + at % kCols;
                const uint4 word = *reinterpret_cast<const uint4*>(&staged[at / kCols * kPitch + at % kCols]);
                __half* const to = linear_product + static_cast<long long>(row) * image_size2 + col;
                if (row < rows && col < image_size2) *reinterpret_cast<uint4*>(to) = word;
            }
            __syncwarp();
        }
    } else {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int row = first_row + warp_row + down * kApart + part / 2 * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2 + part % 2;
                    if (row >= rows || col >= image_size2) continue;
                    linear_product[static_cast<long long>(row) * image_size2 + col] =
                            __float2half(sums[down][along][part]);
                }
            }
        }
    }
#endif
}

// Copies of add_1 and w_q whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
__global__ void __launch_bounds__(256) step_linear_product_pad(
        const __half* __restrict__ add_1, const __half* __restrict__ w_q, __half* __restrict__ add_1_padded,
        __half* __restrict__ w_q_padded, int image_size0, int image_size1, int image_size2) {
    const int rows = image_size0 * image_size1;

    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (blockIdx.y == 0) {
        pad_word(add_1, add_1_padded, rows, image_size2, at);
    } else {
        pad_word(w_q, w_q_padded, image_size2, image_size2, at);
    }
}

template <typename Index>
__global__ void __launch_bounds__(256) step_linear_product_general(
        const __half* __restrict__ add_1, const __half* __restrict__ w_q, __half* __restrict__ linear_product,
        Index image_size0, Index image_size1, Index image_size2) {
    const Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= image_size0 * image_size1 * image_size2) return;
    const Index i = at / (image_size1 * image_size2);
    const Index j = at / image_size2 % image_size1;
    const Index k = at % image_size2;
    float linear_product_sum = 0.0f;
    for (Index l = 0; l < image_size2; ++l) {
        linear_product_sum += __half2float(add_1[i * (image_size1 * image_size2) + j * image_size2 + l]) *
                __half2float(w_q[k * image_size2 + l]);
    }
    linear_product[at] = __float2half(linear_product_sum);
}

template <typename Index>
__global__ void __launch_bounds__(256) step_attention_q_kernel(
        const __half* __restrict__ linear_product, const __half* __restrict__ b_q,
        const __half* __restrict__ linear_1_product, const __half* __restrict__ text_b_q,
        __half* __restrict__ attention_q, Index image_size0) {
#pragma unroll
    for (int part = 0; part < 8; ++part) {
        const Index at = (static_cast<Index>(blockIdx.x) * 8 + part) * blockDim.x + threadIdx.x;
        if (at >= image_size0 * 24 * 1357 * 64) break;
        const Index i = at / (24 * 1357 * 64);
        const Index j = at / (1357 * 64) % 24;
        const Index k = at / 64 % 1357;
        const Index l = at % 64;
        attention_q[at] = __float2half(k < 1024
                ? __half2float(linear_product[i * (1024 * 1536) + k * 1536 + (64 * j + l)]) +
                __half2float(b_q[64 * j + l])
                : __half2float(linear_1_product[i * (333 * 1536) + (k - 1024) * 1536 + (64 * j + l)]) +
                __half2float(text_b_q[64 * j + l]));
    }
}

// attention[i, j, k, l]: the softmax over m of
//     0.125 * (sum[l] attention_q[i, j, k, l] * attention_k[i, j, m, l]),
// times attention_v[i, j, m, l].
//
// A block keeps kRows rows of queries and walks over keys and values in tiles of kKeys rows, two of each in shared memory or on
// their way. Each warp keeps its rows' sums, the largest score so far and the sum of exponentials: where the largest
// grows, what was summed up shrinks.
__global__ void __launch_bounds__(128, 2) step_attention_kernel(
        const __half* __restrict__ attention_v, const __half* __restrict__ attention_q,
        const __half* __restrict__ attention_k, __half* __restrict__ attention, int attention_q_size1,
        int attention_q_size2) {
    constexpr int kRows = 128, kKeys = 64;
    constexpr int kThreads = 128;
    constexpr int kWarpRows = kRows / (kThreads / 32);
    constexpr int kDepth = 64, kWidth = 64;
    constexpr int kPieces = 8;  // of 16 bytes, in a row of shared memory
    constexpr int kRowBytes = kPieces * 16;
    constexpr int kTileBytes = kKeys * kRowBytes;
    constexpr int kStep = kThreads / kPieces;  // rows between two copies of a thread: a multiple of 8
    const float unit = 0.18033688f;  // exponentials are powers of 2
    extern __shared__ __align__(1024) char shared[];
    const unsigned queries_tile = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned keys_tiles = queries_tile + kRows * kRowBytes;
    const unsigned values_tiles = keys_tiles + 2 * kTileBytes;

    const int row_blocks = (attention_q_size2 + kRows - 1) / kRows;
    const int head = blockIdx.x / row_blocks;
    const int first_row = (blockIdx.x - head * row_blocks) * kRows;
    const long long i = head / attention_q_size1;
    const long long j = head % attention_q_size1;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;

    // The 16-byte pieces of a row are permuted by the row, so that eight rows of one column lie in different banks.
    const int copy_row = threadIdx.x / kPieces;
    const int copy_piece = threadIdx.x % kPieces;
    const unsigned copy_to = copy_row * kRowBytes + (copy_piece ^ (copy_row & 7)) * 16;
    const long long keys_stride = 64;
    const long long values_stride = 64;
    const __half* keys_from = attention_k + (i * attention_q_size1 + j) * attention_q_size2 * 64 +
            copy_row * keys_stride + copy_piece * 8;
    const __half* values_from = attention_v + (i * attention_q_size1 + j) * attention_q_size2 * 64 +
            copy_row * values_stride + copy_piece * 8;
    auto fetch = [&](unsigned to, const __half*& from, long long stride, int first_key) {
#pragma unroll
        for (int step = 0; step < kKeys / kStep; ++step) {
            const bool is_there = first_key + copy_row + step * kStep < attention_q_size2;
            copy16<false>(to + copy_to + step * kStep * kRowBytes, from, is_there);
            from += kStep * stride;
        }
        asm volatile("cp.async.commit_group;");
    };

#pragma unroll
    for (int step = 0; step < kRows / kStep; ++step) {
        // Rows beyond the last one are read from it; they are never stored.
        const long long row = min(first_row + copy_row + step * kStep, attention_q_size2 - 1);
        const __half* const from = attention_q + (i * attention_q_size1 + j) * attention_q_size2 * 64 + row * 64 +
                copy_piece * 8;
        copy16<false>(queries_tile + copy_to + step * kStep * kRowBytes, from, true);
    }
    fetch(keys_tiles, keys_from, keys_stride, 0);
    fetch(values_tiles, values_from, values_stride, 0);

    // Where this lane's fragments lie; with a step along a row only an XOR with a constant changes.
    const unsigned queries_lane = queries_tile + (warp * kWarpRows + lane % 16) * kRowBytes +
            (lane / 16 ^ (lane & 7)) * 16;
    const unsigned keys_lane = (lane % 8 + lane / 16 * 8) * kRowBytes + (lane / 8 % 2 ^ (lane & 7)) * 16;
    const unsigned values_lane = lane % 16 * kRowBytes + (lane / 16 ^ (lane & 7)) * 16;
    const int warp_row = first_row + warp * kWarpRows;
    const int lane_row = warp_row + lane / 4;

    float sums[kWarpRows / 16][kWidth / 8][4] = {};
    float most[kWarpRows / 16][2];
    float totals[kWarpRows / 16][2] = {};
#pragma unroll
    for (int down = 0; down < kWarpRows / 16; ++down) most[down][0] = most[down][1] = -INFINITY;

    unsigned current = 0;  // which of two tiles, in bytes
    for (int first_key = 0; first_key < attention_q_size2; first_key += kKeys) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // the tile of keys is there, and all warps have left the ones before
        fetch(keys_tiles + (current ^ kTileBytes), keys_from, keys_stride, first_key + kKeys);

        float scores[kWarpRows / 16][kKeys / 8][4] = {};
#pragma unroll
        for (int step = 0; step < kDepth; step += 16) {
            unsigned left[kWarpRows / 16][4];
#pragma unroll
            for (int down = 0; down < kWarpRows / 16; ++down) {
                load_matrices(left[down], (queries_lane ^ step * 2) + down * 16 * kRowBytes);
            }
#pragma unroll
            for (int along = 0; along < kKeys / 16; ++along) {
                unsigned right[4];
                load_matrices(right, keys_tiles + current + (keys_lane ^ step * 2) + along * 16 * kRowBytes);
#pragma unroll
                for (int down = 0; down < kWarpRows / 16; ++down) {
                    mma_f16(scores[down][2 * along], left[down], right[0], right[1]);
                    mma_f16(scores[down][2 * along + 1], left[down], right[2], right[3]);
                }
            }
        }

        if (first_key + kKeys > attention_q_size2) {
#pragma unroll
            for (int down = 0; down < kWarpRows / 16; ++down) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
#pragma unroll
                    for (int along = 0; along < kKeys / 8; ++along) {
#pragma unroll
                        for (int part = 0; part < 2; ++part) {
                            const int m = first_key + along * 8 + lane % 4 * 2 + part;
                            float& score = scores[down][along][2 * half + part];
                            if (m >= attention_q_size2) score = -INFINITY;
                        }
                    }
                }
            }
        }

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
        __syncthreads();  // the tile of values is there
        fetch(values_tiles + (current ^ kTileBytes), values_from, values_stride, first_key + kKeys);
#pragma unroll
        for (int step = 0; step < kKeys / 16; ++step) {
            // The sums of a product lie in the lanes as the left operand of the next.
            unsigned left[kWarpRows / 16][4];
#pragma unroll
            for (int down = 0; down < kWarpRows / 16; ++down) {
                left[down][0] = packed_f16(scores[down][2 * step][0], scores[down][2 * step][1]);
                left[down][1] = packed_f16(scores[down][2 * step][2], scores[down][2 * step][3]);
                left[down][2] = packed_f16(scores[down][2 * step + 1][0], scores[down][2 * step + 1][1]);
                left[down][3] = packed_f16(scores[down][2 * step + 1][2], scores[down][2 * step + 1][3]);
            }
#pragma unroll
            for (int along = 0; along < kWidth / 16; ++along) {
                unsigned right[4];
                load_matrices_turned(right,
                        values_tiles + current + (values_lane ^ along * 32) + step * 16 * kRowBytes);
#pragma unroll
                for (int down = 0; down < kWarpRows / 16; ++down) {
                    mma_f16(sums[down][2 * along], left[down], right[0], right[1]);
                    mma_f16(sums[down][2 * along + 1], left[down], right[2], right[3]);
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
            const int k = lane_row + down * 16 + half * 8;
            if (k >= attention_q_size2) continue;
            const float share = 1.0f / total;
            __half* const attention_to = attention + (i * attention_q_size1 + j) * attention_q_size2 * 64 +
                    static_cast<long long>(k) * 64;
#pragma unroll
            for (int along = 0; along < kWidth / 8; ++along) {
                *reinterpret_cast<__half2*>(attention_to + along * 8 + lane % 4 * 2) =
                    __floats2half2_rn(sums[down][along][2 * half] * share, sums[down][along][2 * half + 1] * share);
            }
        }
    }
}

// attention[i, j, k, l]: the softmax over m of
//     0.125 * (sum[l] attention_q[i, j, k, l] * attention_k[i, j, m, l]),
// times attention_v[i, j, m, l].
//
// Any size and alignment: a warp for each row. Its lanes take a key each, then a column each, kColumns times; where the
// largest score grows, what was summed up shrinks.
__global__ void __launch_bounds__(128) step_attention_rows(
        const __half* __restrict__ attention_v, const __half* __restrict__ attention_q,
        const __half* __restrict__ attention_k, __half* __restrict__ attention, long long image_size0,
        long long attention_q_size1, long long attention_q_size2) {
    constexpr int kColumns = 8;
    const long long nth = blockIdx.x * 4LL + threadIdx.x / 32;
    if (nth >= image_size0 * attention_q_size1 * attention_q_size2) return;
    const int lane = threadIdx.x % 32;
    const long long i = nth / (attention_q_size1 * attention_q_size2);
    const long long j = nth / attention_q_size2 % attention_q_size1;
    const long long k = nth % attention_q_size2;
    const __half* const queries_row = attention_q + (i * attention_q_size1 + j) * attention_q_size2 * 64 + k * 64;
    const __half* const keys_head = attention_k + (i * attention_q_size1 + j) * attention_q_size2 * 64;
    const __half* const values_head = attention_v + (i * attention_q_size1 + j) * attention_q_size2 * 64;
    const long long since = 0;
    const long long until = attention_q_size2;
    for (long long first_column = 0; first_column == 0 || first_column < 64; first_column += 32 * kColumns) {
        float most = -INFINITY;
        float total = 0.0f;
        float sums[kColumns] = {};
        for (long long first_key = since; first_key < until; first_key += 32) {
            const long long m = first_key + lane;
            float score = -INFINITY;
            if (m < until) {
                score = 0.0f;
                for (long long depth_at = 0; depth_at < 64; ++depth_at) {
                    score += __half2float(queries_row[depth_at]) * __half2float(keys_head[m * 64 + depth_at]);
                }
                score = 0.125f * score;
            }
            float now = fmaxf(most, score);
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, apart));
            // A row without a key so far has -inf here, and -inf - -inf is no number.
            const float zero = now == -INFINITY ? 0.0f : now;
            const float shrink = expf(most - zero);
            const float weight = expf(score - zero);
            most = now;
            total = total * shrink + weight;
#pragma unroll
            for (int nth_column = 0; nth_column < kColumns; ++nth_column) sums[nth_column] *= shrink;
            for (int other = 0; other < 32 && first_key + other < until; ++other) {
                const long long m = first_key + other;
                const float shared_weight = __shfl_sync(0xffffffff, weight, other);
#pragma unroll
                for (int nth_column = 0; nth_column < kColumns; ++nth_column) {
                    const long long column = first_column + lane + nth_column * 32;
                    if (column < 64) sums[nth_column] += shared_weight * __half2float(values_head[m * 64 + column]);
                }
            }
        }
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) total += __shfl_xor_sync(0xffffffff, total, apart);
        const float share = 1.0f / total;
#pragma unroll
        for (int nth_column = 0; nth_column < kColumns; ++nth_column) {
            const long long column = first_column + lane + nth_column * 32;
            if (column >= 64) continue;
            const float sum = sums[nth_column];
            attention[(i * attention_q_size1 + j) * attention_q_size2 * 64 + k * 64 + column] =
                    __float2half(sum * share);
        }
    }
}

template <typename Index, int kThreads, int kVector, int kPacks>
__global__ void __launch_bounds__(kThreads) step_linear_6_left_kernel_rows(
        const __half* __restrict__ attention, __half* __restrict__ linear_6_left, Index image_size0,
        Index attention_q_size1) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
        const Index first = ((static_cast<Index>(blockIdx.x) * kPacks + pack) * kThreads + threadIdx.x) * kVector;
        if (first >= image_size0 * 1024 * attention_q_size1 * 64) break;
        const Index own_row = first / 64;
        const Index column = first % 64;
        const Index i = own_row / (1024 * attention_q_size1);
        const Index j = own_row / attention_q_size1 % 1024;
        const Index k = own_row % attention_q_size1;
        const Pack<__half, kVector> attention_pack =
                load_pack<kVector>(attention + (i * attention_q_size1 * 86848 + j * 64 + k * 86848) + column);
        Pack<__half, kVector> linear_6_left_pack;
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            linear_6_left_pack.at[m] = attention_pack.at[m];
        }
        store_pack(linear_6_left + first, linear_6_left_pack);
    }
}

// kVector elements of linear_6_left, from `first` on.
template <int kVector, typename Index>
__device__ __forceinline__ void step_linear_6_left_kernel_elements(
        const __half* __restrict__ attention, __half* __restrict__ linear_6_left, Index attention_q_size1,
        Index first) {
    Pack<__half, kVector> linear_6_left_pack;
#pragma unroll
    for (int m = 0; m < kVector; ++m) {
        const Index at = first + m;
        const Index i = at / (1024 * attention_q_size1 * 64);
        const Index j = at / (attention_q_size1 * 64) % 1024;
        const Index k = at / 64 % attention_q_size1;
        const Index l = at % 64;
        linear_6_left_pack.at[m] = attention[i * (attention_q_size1 * 1357 * 64) + k * (1357 * 64) + j * 64 + l];
    }
    store_pack(linear_6_left + first, linear_6_left_pack);
}

template <typename Index, int kThreads, int kVector, int kPacks>
__global__ void __launch_bounds__(kThreads) step_linear_6_left_kernel(
        const __half* __restrict__ attention, __half* __restrict__ linear_6_left, Index image_size0,
        Index attention_q_size1) {
    const Index count = image_size0 * 1024 * attention_q_size1 * 64;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
        const Index first = ((static_cast<Index>(blockIdx.x) * kPacks + pack) * kThreads + threadIdx.x) * kVector;
        if (first + kVector <= count) {
            step_linear_6_left_kernel_elements<kVector>(attention, linear_6_left, attention_q_size1, first);
        } else {
#pragma unroll 1
            for (Index at = first; at < count; ++at) {
                step_linear_6_left_kernel_elements<1>(attention, linear_6_left, attention_q_size1, at);
            }
        }
    }
}

// linear_6_product[i, j, k] = sum[l] linear_6_left[i, j, l] * w_o[k, l]
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that: built for sm_90a by wgmma, else by
// mma.sync. kStages slices of both operands are in shared memory or on their way to it. Rows of linear_6_left and w_o in memory are
// whole 16-byte words, if need be with zeros at their ends. kThroughL1: neighbours in a row share lines.
template <int kTileM, int kTileN, int kWarpM, int kWarpN, int kStages, int kBlocks, bool kThroughL1>
__global__ void __launch_bounds__(kTileM / kWarpM * (kTileN / kWarpN) * 32, kBlocks) step_add_4_kernel(
        const __half* __restrict__ image, const __half* __restrict__ image_mod,
        const __half* __restrict__ b_o, const __half* __restrict__ linear_6_left,
        const __half* __restrict__ w_o, __half* __restrict__ add_4, int image_size0, int image_size1,
        int image_size2) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, no GPU has the shared memory that a launch asks for
    constexpr int kTileK = 64;
    constexpr int kWord = 8;  // elements of add_4 in 16 bytes
    constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
    const int rows = image_size0 * image_size1;

    const int linear_6_left_leading = (image_size2 + 7) / 8 * 8, w_o_leading = (image_size2 + 7) / 8 * 8;
    const int tile_rows = (rows + kTileM - 1) / kTileM;
    const int tile_cols = (image_size2 + kTileN - 1) / kTileN;
    const int tile = blockIdx.x;
    // Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
    const int band = tile / (8 * tile_cols) * 8;
    const int band_rows = min(tile_rows - band, 8);
    const int in_band = tile - band * tile_cols;
    const int first_row = (band + in_band % band_rows) * kTileM;
    const int first_col = in_band / band_rows * kTileN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A warpgroup computes pieces of 64 rows, each of its four warps 16 rows of one.
    constexpr int kPieces = kTileM * 128 / kThreads / 64, kCols = kTileN;
    constexpr int kApart = 64;  // rows between two pieces of a warp
    const int warp_row = warp / 4 * kPieces * 64 + warp % 4 * 16;
    const int warp_col = 0;
#else
    constexpr int kPieces = kWarpM / 16, kCols = kWarpN;  // pieces of 16 rows, and the columns of a warp
    constexpr int kApart = 16;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
#endif
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. Slices lie in rows of 128 bytes, whose 16-byte pieces are permuted by the row: eight rows
    // of one column are then in different banks. The rows of a thread are a multiple of 8 apart, so one permutation
    // serves them all. What lies beyond the last row or column is read from the last one: those sums are never stored.
    // Beyond the last image_size2 are zeros.
    constexpr int kCopies_linear_6_left = kTileM * kTileK / 8 / kThreads;
    constexpr int kApart_linear_6_left = kThreads / 8;  // rows of linear_6_left between two copies of a thread
    const int linear_6_left_row = threadIdx.x / 8;
    const int linear_6_left_depth = threadIdx.x % 8 * 8;
    const unsigned linear_6_left_to = linear_6_left_row * 128 + (threadIdx.x % 8 ^ (linear_6_left_row & 7)) * 16;
    const __half* linear_6_left_from[kCopies_linear_6_left];
#pragma unroll
    for (int nth = 0; nth < kCopies_linear_6_left; ++nth) {
        const long long row = min(first_row + linear_6_left_row + nth * kApart_linear_6_left, rows - 1);
        linear_6_left_from[nth] = linear_6_left + row * linear_6_left_leading + linear_6_left_depth;
    }
    constexpr int kCopies_w_o = kTileN * kTileK / 8 / kThreads;
    constexpr int kApart_w_o = kThreads / 8;  // rows of w_o between two copies of a thread
    const int w_o_row = threadIdx.x / 8;
    const int w_o_depth = threadIdx.x % 8 * 8;
    const unsigned w_o_to = kBytesA + w_o_row * 128 + (threadIdx.x % 8 ^ (w_o_row & 7)) * 16;
    const __half* w_o_from[kCopies_w_o];
#pragma unroll
    for (int nth = 0; nth < kCopies_w_o; ++nth) {
        const long long row = min(first_col + w_o_row + nth * kApart_w_o, image_size2 - 1);
        w_o_from[nth] = w_o + row * w_o_leading + w_o_depth;
    }

    constexpr int kFetches = 4;  // parts of a slice, so that copies are spread over the products of another
    auto fetch = [&](int from, unsigned to, int fetched) {
#pragma unroll
        for (int nth = fetched * kCopies_linear_6_left / kFetches;
                nth < (fetched + 1) * kCopies_linear_6_left / kFetches; ++nth) {
            const unsigned place = to + linear_6_left_to + nth * kApart_linear_6_left * 128;
            copy16<kThroughL1>(place, linear_6_left_from[nth], from + linear_6_left_depth < image_size2);
            linear_6_left_from[nth] += kTileK;
        }
#pragma unroll
        for (int nth = fetched * kCopies_w_o / kFetches; nth < (fetched + 1) * kCopies_w_o / kFetches; ++nth) {
            const unsigned place = to + w_o_to + nth * kApart_w_o * 128;
            copy16<kThroughL1>(place, w_o_from[nth], from + w_o_depth < image_size2);
            w_o_from[nth] += kTileK;
        }
    };

    float sums[kPieces][kCols / 8][4] = {};
    const int slices = (image_size2 + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
    unsigned reading = shared_at;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
    for (int stage = 0; stage < kStages - 2; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 2) * kStageBytes;
    for (int slice = 0; slice < slices; ++slice) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the cache of generic stores
        __syncthreads();
        // The products of the slice before are still under way: all warps have left the one before that.
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
                const unsigned long long left =
                        matrix_descriptor(reading + (warp_row / 64 + down) * 64 * 128 + step * 2);
                const unsigned long long right = matrix_descriptor(reading + kBytesA + step * 2);
                wgmma_f16<0, 0>(sums[down], left, right);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, filling, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
        reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int down = 0; down < kPieces; ++down) {
#pragma unroll
        for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 4; ++part) asm volatile("" : "+f"(sums[down][along][part]));  // not read before
        }
    }
#else
    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
    const unsigned linear_6_left_lane = (warp_row + lane % 16) * 128 + (lane / 16 ^ (lane & 7)) * 16;
    const int w_o_lane_row = warp_col + lane % 8 + lane / 16 * 8;
    const unsigned w_o_lane = kBytesA + w_o_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;

    unsigned left[2][kPieces][4];
    unsigned right[2][kCols / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            load_matrices(left[half][down], stage + (linear_6_left_lane ^ step * 2) + down * 16 * 128);
        }
#pragma unroll
        for (int along = 0; along < kCols / 16; ++along) {
            load_matrices(right[half][along], stage + (w_o_lane ^ step * 2) + along * 16 * 128);
        }
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
                fetch(ahead, filling, step / 16);  // into the stage that all warps have left
            } else {
                fetch(ahead, filling, step / 16);
                asm volatile("cp.async.commit_group;");
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
#pragma unroll
                for (int along = 0; along < kCols / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_f16(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
    }
#endif

    auto result = [&](float total, long long row, long long col) {
        return __half2float(image[row * image_size2 + col]) +
                __half2float(image_mod[(row / image_size1) * (6 * image_size2) + 2 * image_size2 + col]) *
                (total + __half2float(b_o[col]));
    };

    if (image_size2 % kWord == 0 && reinterpret_cast<unsigned long long>(add_4) % 16 == 0) {
        // By way of shared memory, so that a warp stores whole 16-byte words of few rows.
        constexpr int kPitch = kCols + 8;  // 8 more: no bank twice
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // slices are done with
        __half* const staged = reinterpret_cast<__half*>(shared) + warp * 16 * kPitch;
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            const int top = first_row + warp_row + down * kApart;
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    __half2* const to = reinterpret_cast<__half2*>(
                        &staged[(half * 8 + lane / 4) * kPitch + along * 8 + lane % 4 * 2]);
                    const int row = top + half * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2;
                    if (row < rows &&
                            col < image_size2) *to = __floats2half2_rn(result(sums[down][along][half * 2], row,
                            col), result(sums[down][along][half * 2 + 1], row, col + 1));
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane * kWord; at < 16 * kCols; at += 32 * kWord) {
                const int row = top + at / kCols;
                const int col = first_col + warp_col + at % kCols;
                const uint4 word = *reinterpret_cast<const uint4*>(&staged[at / kCols * kPitch + at % kCols]);
                __half* const to = add_4 + static_cast<long long>(row) * image_size2 + col;
                if (row < rows && col < image_size2) *reinterpret_cast<uint4*>(to) = word;
            }
            __syncwarp();
        }
    } else {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int row = first_row + warp_row + down * kApart + part / 2 * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2 + part % 2;
                    if (row >= rows || col >= image_size2) continue;
                    add_4[static_cast<long long>(row) * image_size2 + col] =
                            __float2half(result(sums[down][along][part], row, col));
                }
            }
        }
    }
#endif
}

// Copies of linear_6_left and w_o whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
__global__ void __launch_bounds__(256) step_add_4_pad(
        const __half* __restrict__ linear_6_left, const __half* __restrict__ w_o,
        __half* __restrict__ linear_6_left_padded, __half* __restrict__ w_o_padded, int image_size0,
        int image_size1, int image_size2) {
    const int rows = image_size0 * image_size1;

    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (blockIdx.y == 0) {
        pad_word(linear_6_left, linear_6_left_padded, rows, image_size2, at);
    } else {
        pad_word(w_o, w_o_padded, image_size2, image_size2, at);
    }
}

template <typename Index>
__global__ void __launch_bounds__(256) step_add_4_general(
        const __half* __restrict__ image, const __half* __restrict__ image_mod,
        const __half* __restrict__ b_o, const __half* __restrict__ linear_6_left,
        const __half* __restrict__ w_o, __half* __restrict__ add_4, Index image_size0, Index image_size1,
        Index image_size2) {
    const Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= image_size0 * image_size1 * image_size2) return;
    const Index i = at / (image_size1 * image_size2);
    const Index j = at / image_size2 % image_size1;
    const Index k = at % image_size2;
    float linear_6_product = 0.0f;
    for (Index l = 0; l < image_size2; ++l) {
        linear_6_product += __half2float(linear_6_left[i * (image_size1 * image_size2) + j * image_size2 + l]) *
                __half2float(w_o[k * image_size2 + l]);
    }
    add_4[at] = __float2half(__half2float(image[at]) +
            __half2float(image_mod[i * (6 * image_size2) + 2 * image_size2 + k]) *
            (linear_6_product + __half2float(b_o[k])));
}

// kLanes threads share a row, of which each keeps up to kPerLane packs of kVector elements in registers.
// To ask for one block per multiprocessor leaves the compiler the registers that keep it from spilling.
template <int kLanes, int kRows, int kPerLane, int kVector>
__global__ void __launch_bounds__(kLanes * kRows, 1) step_linear_7_left_rows(
        const __half* __restrict__ add_4, const __half* __restrict__ image_mod,
        __half* __restrict__ linear_7_left, int image_size0, int image_size1, int image_size2) {
    // Threads beyond the last row have no columns; they stay, as shuffles need all lanes of a warp.
    const int lane = threadIdx.x % kLanes;
    const long long wanted = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / kLanes;
    const bool is_row = wanted < image_size0 * image_size1;
    const long long own_row = is_row ? wanted : image_size0 * image_size1 - 1;
    const int columns = is_row ? image_size2 : 0;
    const long long i = own_row / image_size1;
    const __half* const add_4_row = add_4 + own_row * image_size2;
    const __half* const image_mod_row = image_mod + i * image_size2 * 6 + image_size2 * 4;
    const __half* const image_mod_row_ = image_mod + i * image_size2 * 6 + image_size2 * 3;
    __half* const linear_7_left_row = linear_7_left + own_row * image_size2;

    // The row is read once and stays in registers.
    Pack<__half, kVector> add_4_kept[kPerLane];
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
            add_4_kept[n] = load_pack<kVector>(add_4_row + first);
        }
    }

    float layer_norm_2_mean_sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_2_mean_sum += __half2float(add_4_kept[n].at[m]);
            }
        }
    }
    layer_norm_2_mean_sum = row_sum<kLanes>(layer_norm_2_mean_sum);

    const float layer_norm_2_mean = layer_norm_2_mean_sum / static_cast<float>(image_size2);
    float layer_norm_2_var_squares = 0.0f;
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_2_var_squares += square(__half2float(add_4_kept[n].at[m]) - layer_norm_2_mean);
            }
        }
    }
    layer_norm_2_var_squares = row_sum<kLanes, 1>(layer_norm_2_var_squares);

    const float layer_norm_2_var = layer_norm_2_var_squares / static_cast<float>(image_size2);
    const float scale = rsqrtf(layer_norm_2_var + 1e-6f);
#pragma unroll
    for (int n = 0; n < kPerLane; ++n) {
        const int first = (n * kLanes + lane) * kVector;
        if (first < columns) {
            const Pack<__half, kVector> image_mod_pack = load_pack<kVector>(image_mod_row + first);
            const Pack<__half, kVector> image_mod_row__pack = load_pack<kVector>(image_mod_row_ + first);
            Pack<__half, kVector> linear_7_left_pack;
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                linear_7_left_pack.at[m] = __float2half((__half2float(add_4_kept[n].at[m]) - layer_norm_2_mean) *
                        scale * (__half2float(image_mod_pack.at[m]) + 1.0f) + __half2float(image_mod_row__pack.at[m]));
            }
            store_global(linear_7_left_row + first, linear_7_left_pack);
        }
    }
}

// A block for each row: shared memory keeps it.
template <int kLanes, int kVector>
__global__ void __launch_bounds__(kLanes) step_linear_7_left_shared_rows(
        const __half* __restrict__ add_4, const __half* __restrict__ image_mod,
        __half* __restrict__ linear_7_left, int image_size0, int image_size1, int image_size2) {
    const int lane = threadIdx.x;
    const long long own_row = blockIdx.x;
    const long long i = own_row / image_size1;
    const __half* const add_4_row = add_4 + own_row * image_size2;
    const __half* const image_mod_row = image_mod + i * image_size2 * 6 + image_size2 * 4;
    const __half* const image_mod_row_ = image_mod + i * image_size2 * 6 + image_size2 * 3;
    __half* const linear_7_left_row = linear_7_left + own_row * image_size2;
    extern __shared__ __align__(16) unsigned char kept_rows[];
    __half* const add_4_kept = reinterpret_cast<__half*>(kept_rows);

    // The row is read once. A lane reads back what it copied itself: no barrier is needed.
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        copy_pack<kVector>(add_4_kept + first, add_4_row + first);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);

    float layer_norm_2_mean_sum = 0.0f;
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> add_4_pack = load_pack<kVector>(add_4_kept + first);
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            layer_norm_2_mean_sum += __half2float(add_4_pack.at[m]);
        }
    }
    layer_norm_2_mean_sum = row_sum<kLanes>(layer_norm_2_mean_sum);

    const float layer_norm_2_mean = layer_norm_2_mean_sum / static_cast<float>(image_size2);
    float layer_norm_2_var_squares = 0.0f;
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> add_4_pack = load_pack<kVector>(add_4_kept + first);
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            layer_norm_2_var_squares += square(__half2float(add_4_pack.at[m]) - layer_norm_2_mean);
        }
    }
    layer_norm_2_var_squares = row_sum<kLanes, 1>(layer_norm_2_var_squares);

    const float layer_norm_2_var = layer_norm_2_var_squares / static_cast<float>(image_size2);
    const float scale = rsqrtf(layer_norm_2_var + 1e-6f);
#pragma unroll 4
    for (int first = lane * kVector; first < image_size2; first += kLanes * kVector) {
        const Pack<__half, kVector> add_4_pack = load_pack<kVector>(add_4_kept + first);
        const Pack<__half, kVector> image_mod_pack = load_pack<kVector>(image_mod_row + first);
        const Pack<__half, kVector> image_mod_row__pack = load_pack<kVector>(image_mod_row_ + first);
        Pack<__half, kVector> linear_7_left_pack;
#pragma unroll
        for (int m = 0; m < kVector; ++m) {
            linear_7_left_pack.at[m] = __float2half((__half2float(add_4_pack.at[m]) - layer_norm_2_mean) * scale *
                    (__half2float(image_mod_pack.at[m]) + 1.0f) + __half2float(image_mod_row__pack.at[m]));
        }
        store_global(linear_7_left_row + first, linear_7_left_pack);
    }
}

// A block for each row: each pass reads it anew.
template <int kLanes, int kVector>
__global__ void __launch_bounds__(kLanes) step_linear_7_left_long_rows(
        const __half* __restrict__ add_4, const __half* __restrict__ image_mod,
        __half* __restrict__ linear_7_left, long long image_size0, long long image_size1,
        long long image_size2) {
    const int lane = threadIdx.x;
    for (long long own_row = blockIdx.x; own_row < image_size0 * image_size1; own_row += gridDim.x) {
        const long long i = own_row / image_size1;
        const __half* const add_4_row = add_4 + own_row * image_size2;
        const __half* const image_mod_row = image_mod + i * image_size2 * 6 + image_size2 * 4;
        const __half* const image_mod_row_ = image_mod + i * image_size2 * 6 + image_size2 * 3;
        __half* const linear_7_left_row = linear_7_left + own_row * image_size2;

        float layer_norm_2_mean_sum = 0.0f;
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> add_4_pack = load_pack<kVector>(add_4_row + first);
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_2_mean_sum += __half2float(add_4_pack.at[m]);
            }
        }
        layer_norm_2_mean_sum = row_sum<kLanes>(layer_norm_2_mean_sum);

        const float layer_norm_2_mean = layer_norm_2_mean_sum / static_cast<float>(image_size2);
        float layer_norm_2_var_squares = 0.0f;
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> add_4_pack = load_pack<kVector>(add_4_row + first);
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                layer_norm_2_var_squares += square(__half2float(add_4_pack.at[m]) - layer_norm_2_mean);
            }
        }
        layer_norm_2_var_squares = row_sum<kLanes, 1>(layer_norm_2_var_squares);

        const float layer_norm_2_var = layer_norm_2_var_squares / static_cast<float>(image_size2);
        const float scale = rsqrtf(layer_norm_2_var + 1e-6f);
#pragma unroll 4
        for (long long first = lane * kVector; first < image_size2; first += kLanes * kVector) {
            const Pack<__half, kVector> add_4_pack = load_pack<kVector>(add_4_row + first);
            const Pack<__half, kVector> image_mod_pack = load_pack<kVector>(image_mod_row + first);
            const Pack<__half, kVector> image_mod_row__pack = load_pack<kVector>(image_mod_row_ + first);
            Pack<__half, kVector> linear_7_left_pack;
#pragma unroll
            for (int m = 0; m < kVector; ++m) {
                linear_7_left_pack.at[m] = __float2half((__half2float(add_4_pack.at[m]) - layer_norm_2_mean) * scale *
                        (__half2float(image_mod_pack.at[m]) + 1.0f) + __half2float(image_mod_row__pack.at[m]));
            }
            stream_pack(linear_7_left_row + first, linear_7_left_pack);
        }
    }
}

// linear_7_product[i, j, k] = sum[l] linear_7_left[i, j, l] * w_up[k, l]
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that: built for sm_90a by wgmma, else by
// mma.sync. kStages slices of both operands are in shared memory or on their way to it. Rows of linear_7_left and w_up in memory are
// whole 16-byte words, if need be with zeros at their ends. kThroughL1: neighbours in a row share lines.
template <int kTileM, int kTileN, int kWarpM, int kWarpN, int kStages, int kBlocks, bool kThroughL1>
__global__ void __launch_bounds__(kTileM / kWarpM * (kTileN / kWarpN) * 32, kBlocks) step_linear_8_left_kernel(
        const __half* __restrict__ b_up, const __half* __restrict__ linear_7_left,
        const __half* __restrict__ w_up, __half* __restrict__ linear_8_left, int w_up_size0, int image_size0,
        int image_size1, int image_size2) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, no GPU has the shared memory that a launch asks for
    constexpr int kTileK = 64;
    constexpr int kWord = 8;  // elements of linear_8_left in 16 bytes
    constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
    const int rows = image_size0 * image_size1;

    const int linear_7_left_leading = (image_size2 + 7) / 8 * 8, w_up_leading = (image_size2 + 7) / 8 * 8;
    const int tile_rows = (rows + kTileM - 1) / kTileM;
    const int tile_cols = (w_up_size0 + kTileN - 1) / kTileN;
    const int tile = blockIdx.x;
    // Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
    const int band = tile / (8 * tile_cols) * 8;
    const int band_rows = min(tile_rows - band, 8);
    const int in_band = tile - band * tile_cols;
    const int first_row = (band + in_band % band_rows) * kTileM;
    const int first_col = in_band / band_rows * kTileN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A warpgroup computes pieces of 64 rows, each of its four warps 16 rows of one.
    constexpr int kPieces = kTileM * 128 / kThreads / 64, kCols = kTileN;
    constexpr int kApart = 64;  // rows between two pieces of a warp
    const int warp_row = warp / 4 * kPieces * 64 + warp % 4 * 16;
    const int warp_col = 0;
#else
    constexpr int kPieces = kWarpM / 16, kCols = kWarpN;  // pieces of 16 rows, and the columns of a warp
    constexpr int kApart = 16;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
#endif
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. Slices lie in rows of 128 bytes, whose 16-byte pieces are permuted by the row: eight rows
    // of one column are then in different banks. The rows of a thread are a multiple of 8 apart, so one permutation
    // serves them all. What lies beyond the last row or column is read from the last one: those sums are never stored.
    // Beyond the last image_size2 are zeros.
    constexpr int kCopies_linear_7_left = kTileM * kTileK / 8 / kThreads;
    constexpr int kApart_linear_7_left = kThreads / 8;  // rows of linear_7_left between two copies of a thread
    const int linear_7_left_row = threadIdx.x / 8;
    const int linear_7_left_depth = threadIdx.x % 8 * 8;
    const unsigned linear_7_left_to = linear_7_left_row * 128 + (threadIdx.x % 8 ^ (linear_7_left_row & 7)) * 16;
    const __half* linear_7_left_from[kCopies_linear_7_left];
#pragma unroll
    for (int nth = 0; nth < kCopies_linear_7_left; ++nth) {
        const long long row = min(first_row + linear_7_left_row + nth * kApart_linear_7_left, rows - 1);
        linear_7_left_from[nth] = linear_7_left + row * linear_7_left_leading + linear_7_left_depth;
    }
    constexpr int kCopies_w_up = kTileN * kTileK / 8 / kThreads;
    constexpr int kApart_w_up = kThreads / 8;  // rows of w_up between two copies of a thread
    const int w_up_row = threadIdx.x / 8;
    const int w_up_depth = threadIdx.x % 8 * 8;
    const unsigned w_up_to = kBytesA + w_up_row * 128 + (threadIdx.x % 8 ^ (w_up_row & 7)) * 16;
    const __half* w_up_from[kCopies_w_up];
#pragma unroll
    for (int nth = 0; nth < kCopies_w_up; ++nth) {
        const long long row = min(first_col + w_up_row + nth * kApart_w_up, w_up_size0 - 1);
        w_up_from[nth] = w_up + row * w_up_leading + w_up_depth;
    }

    constexpr int kFetches = 4;  // parts of a slice, so that copies are spread over the products of another
    auto fetch = [&](int from, unsigned to, int fetched) {
#pragma unroll
        for (int nth = fetched * kCopies_linear_7_left / kFetches;
                nth < (fetched + 1) * kCopies_linear_7_left / kFetches; ++nth) {
            const unsigned place = to + linear_7_left_to + nth * kApart_linear_7_left * 128;
            copy16<kThroughL1>(place, linear_7_left_from[nth], from + linear_7_left_depth < image_size2);
            linear_7_left_from[nth] += kTileK;
        }
#pragma unroll
        for (int nth = fetched * kCopies_w_up / kFetches; nth < (fetched + 1) * kCopies_w_up / kFetches; ++nth) {
            const unsigned place = to + w_up_to + nth * kApart_w_up * 128;
            copy16<kThroughL1>(place, w_up_from[nth], from + w_up_depth < image_size2);
            w_up_from[nth] += kTileK;
        }
    };

    float sums[kPieces][kCols / 8][4] = {};
    const int slices = (image_size2 + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
    unsigned reading = shared_at;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
    for (int stage = 0; stage < kStages - 2; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 2) * kStageBytes;
    for (int slice = 0; slice < slices; ++slice) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the cache of generic stores
        __syncthreads();
        // The products of the slice before are still under way: all warps have left the one before that.
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
                const unsigned long long left =
                        matrix_descriptor(reading + (warp_row / 64 + down) * 64 * 128 + step * 2);
                const unsigned long long right = matrix_descriptor(reading + kBytesA + step * 2);
                wgmma_f16<0, 0>(sums[down], left, right);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, filling, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
        reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int down = 0; down < kPieces; ++down) {
#pragma unroll
        for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 4; ++part) asm volatile("" : "+f"(sums[down][along][part]));  // not read before
        }
    }
#else
    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
    const unsigned linear_7_left_lane = (warp_row + lane % 16) * 128 + (lane / 16 ^ (lane & 7)) * 16;
    const int w_up_lane_row = warp_col + lane % 8 + lane / 16 * 8;
    const unsigned w_up_lane = kBytesA + w_up_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;

    unsigned left[2][kPieces][4];
    unsigned right[2][kCols / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            load_matrices(left[half][down], stage + (linear_7_left_lane ^ step * 2) + down * 16 * 128);
        }
#pragma unroll
        for (int along = 0; along < kCols / 16; ++along) {
            load_matrices(right[half][along], stage + (w_up_lane ^ step * 2) + along * 16 * 128);
        }
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
                fetch(ahead, filling, step / 16);  // into the stage that all warps have left
            } else {
                fetch(ahead, filling, step / 16);
                asm volatile("cp.async.commit_group;");
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
#pragma unroll
                for (int along = 0; along < kCols / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_f16(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
    }
#endif

    auto result = [&](float total, long long row, long long col) {
        return gelu_tanh(total + __half2float(b_up[col]));
    };

    if (w_up_size0 % kWord == 0 && reinterpret_cast<unsigned long long>(linear_8_left) % 16 == 0) {
        // By way of shared memory, so that a warp stores whole 16-byte words of few rows.
        constexpr int kPitch = kCols + 8;  // 8 more: no bank twice
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // slices are done with
        __half* const staged = reinterpret_cast<__half*>(shared) + warp * 16 * kPitch;
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            const int top = first_row + warp_row + down * kApart;
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    __half2* const to = reinterpret_cast<__half2*>(
                        &staged[(half * 8 + lane / 4) * kPitch + along * 8 + lane % 4 * 2]);
                    const int row = top + half * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2;
                    if (row < rows &&
                            col < w_up_size0) *to = __floats2half2_rn(result(sums[down][along][half * 2], row,
                            col), result(sums[down][along][half * 2 + 1], row, col + 1));
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane * kWord; at < 16 * kCols; at += 32 * kWord) {
                const int row = top + at / kCols;
                const int col = first_col + warp_col + at % kCols;
                const uint4 word = *reinterpret_cast<const uint4*>(&staged[at / kCols * kPitch + at % kCols]);
                __half* const to = linear_8_left + static_cast<long long>(row) * w_up_size0 + col;
                if (row < rows && col < w_up_size0) *reinterpret_cast<uint4*>(to) = word;
            }
            __syncwarp();
        }
    } else {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int row = first_row + warp_row + down * kApart + part / 2 * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2 + part % 2;
                    if (row >= rows || col >= w_up_size0) continue;
                    linear_8_left[static_cast<long long>(row) * w_up_size0 + col] =
                            __float2half(result(sums[down][along][part], row, col));
                }
            }
        }
    }
#endif
}

// Copies of linear_7_left and w_up whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
__global__ void __launch_bounds__(256) step_linear_8_left_pad(
        const __half* __restrict__ linear_7_left, const __half* __restrict__ w_up,
        __half* __restrict__ linear_7_left_padded, __half* __restrict__ w_up_padded, int w_up_size0,
        int image_size0, int image_size1, int image_size2) {
    const int rows = image_size0 * image_size1;

    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (blockIdx.y == 0) {
        pad_word(linear_7_left, linear_7_left_padded, rows, image_size2, at);
    } else {
        pad_word(w_up, w_up_padded, w_up_size0, image_size2, at);
    }
}

template <typename Index>
__global__ void __launch_bounds__(256) step_linear_8_left_general(
        const __half* __restrict__ b_up, const __half* __restrict__ linear_7_left,
        const __half* __restrict__ w_up, __half* __restrict__ linear_8_left, Index w_up_size0,
        Index image_size0, Index image_size1, Index image_size2) {
    const Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= image_size0 * image_size1 * w_up_size0) return;
    const Index i = at / (image_size1 * w_up_size0);
    const Index j = at / w_up_size0 % image_size1;
    const Index k = at % w_up_size0;
    float linear_7_product = 0.0f;
    for (Index l = 0; l < image_size2; ++l) {
        linear_7_product += __half2float(linear_7_left[i * (image_size1 * image_size2) + j * image_size2 + l]) *
                __half2float(w_up[k * image_size2 + l]);
    }
    linear_8_left[at] = __float2half(fast_gelu_tanh(linear_7_product + __half2float(b_up[k])));
}

// linear_8_product[i, j, k] = sum[l] linear_8_left[i, j, l] * w_down[k, l]
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that: built for sm_90a by wgmma, else by
// mma.sync. kStages slices of both operands are in shared memory or on their way to it. Rows of linear_8_left and w_down in memory are
// whole 16-byte words, if need be with zeros at their ends. kThroughL1: neighbours in a row share lines.
template <int kTileM, int kTileN, int kWarpM, int kWarpN, int kStages, int kBlocks, bool kThroughL1>
__global__ void __launch_bounds__(kTileM / kWarpM * (kTileN / kWarpN) * 32, kBlocks) step_layer_norm_3_in_kernel(
        const __half* __restrict__ add_4, const __half* __restrict__ image_mod,
        const __half* __restrict__ b_down, const __half* __restrict__ linear_8_left,
        const __half* __restrict__ w_down, __half* __restrict__ layer_norm_3_in, int image_size0,
        int image_size1, int image_size2, int w_up_size0) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, no GPU has the shared memory that a launch asks for
    constexpr int kTileK = 64;
    constexpr int kWord = 8;  // elements of layer_norm_3_in in 16 bytes
    constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
    const int rows = image_size0 * image_size1;

    const int linear_8_left_leading = (w_up_size0 + 7) / 8 * 8, w_down_leading = (w_up_size0 + 7) / 8 * 8;
    const int tile_rows = (rows + kTileM - 1) / kTileM;
    const int tile_cols = (image_size2 + kTileN - 1) / kTileN;
    const int tile = blockIdx.x;
    // Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
    const int band = tile / (8 * tile_cols) * 8;
    const int band_rows = min(tile_rows - band, 8);
    const int in_band = tile - band * tile_cols;
    const int first_row = (band + in_band % band_rows) * kTileM;
    const int first_col = in_band / band_rows * kTileN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A warpgroup computes pieces of 64 rows, each of its four warps 16 rows of one.
    constexpr int kPieces = kTileM * 128 / kThreads / 64, kCols = kTileN;
    constexpr int kApart = 64;  // rows between two pieces of a warp
    const int warp_row = warp / 4 * kPieces * 64 + warp % 4 * 16;
    const int warp_col = 0;
#else
    constexpr int kPieces = kWarpM / 16, kCols = kWarpN;  // pieces of 16 rows, and the columns of a warp
    constexpr int kApart = 16;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
#endif
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. Slices lie in rows of 128 bytes, whose 16-byte pieces are permuted by the row: eight rows
    // of one column are then in different banks. The rows of a thread are a multiple of 8 apart, so one permutation
    // serves them all. What lies beyond the last row or column is read from the last one: those sums are never stored.
    // Beyond the last w_up_size0 are zeros.
    constexpr int kCopies_linear_8_left = kTileM * kTileK / 8 / kThreads;
    constexpr int kApart_linear_8_left = kThreads / 8;  // rows of linear_8_left between two copies of a thread
    const int linear_8_left_row = threadIdx.x / 8;
    const int linear_8_left_depth = threadIdx.x % 8 * 8;
    const unsigned linear_8_left_to = linear_8_left_row * 128 + (threadIdx.x % 8 ^ (linear_8_left_row & 7)) * 16;
    const __half* linear_8_left_from[kCopies_linear_8_left];
#pragma unroll
    for (int nth = 0; nth < kCopies_linear_8_left; ++nth) {
        const long long row = min(first_row + linear_8_left_row + nth * kApart_linear_8_left, rows - 1);
        linear_8_left_from[nth] = linear_8_left + row * linear_8_left_leading + linear_8_left_depth;
    }
    constexpr int kCopies_w_down = kTileN * kTileK / 8 / kThreads;
    constexpr int kApart_w_down = kThreads / 8;  // rows of w_down between two copies of a thread
    const int w_down_row = threadIdx.x / 8;
    const int w_down_depth = threadIdx.x % 8 * 8;
    const unsigned w_down_to = kBytesA + w_down_row * 128 + (threadIdx.x % 8 ^ (w_down_row & 7)) * 16;
    const __half* w_down_from[kCopies_w_down];
#pragma unroll
    for (int nth = 0; nth < kCopies_w_down; ++nth) {
        const long long row = min(first_col + w_down_row + nth * kApart_w_down, image_size2 - 1);
        w_down_from[nth] = w_down + row * w_down_leading + w_down_depth;
    }

    constexpr int kFetches = 4;  // parts of a slice, so that copies are spread over the products of another
    auto fetch = [&](int from, unsigned to, int fetched) {
#pragma unroll
        for (int nth = fetched * kCopies_linear_8_left / kFetches;
                nth < (fetched + 1) * kCopies_linear_8_left / kFetches; ++nth) {
            const unsigned place = to + linear_8_left_to + nth * kApart_linear_8_left * 128;
            copy16<kThroughL1>(place, linear_8_left_from[nth], from + linear_8_left_depth < w_up_size0);
            linear_8_left_from[nth] += kTileK;
        }
#pragma unroll
        for (int nth = fetched * kCopies_w_down / kFetches; nth < (fetched + 1) * kCopies_w_down / kFetches; ++nth) {
            const unsigned place = to + w_down_to + nth * kApart_w_down * 128;
            copy16<kThroughL1>(place, w_down_from[nth], from + w_down_depth < w_up_size0);
            w_down_from[nth] += kTileK;
        }
    };

    float sums[kPieces][kCols / 8][4] = {};
    const int slices = (w_up_size0 + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
    unsigned reading = shared_at;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
    for (int stage = 0; stage < kStages - 2; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 2) * kStageBytes;
    for (int slice = 0; slice < slices; ++slice) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the cache of generic stores
        __syncthreads();
        // The products of the slice before are still under way: all warps have left the one before that.
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
                const unsigned long long left =
                        matrix_descriptor(reading + (warp_row / 64 + down) * 64 * 128 + step * 2);
                const unsigned long long right = matrix_descriptor(reading + kBytesA + step * 2);
                wgmma_f16<0, 0>(sums[down], left, right);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, filling, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
        reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int down = 0; down < kPieces; ++down) {
#pragma unroll
        for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 4; ++part) asm volatile("" : "+f"(sums[down][along][part]));  // not read before
        }
    }
#else
    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
    const unsigned linear_8_left_lane = (warp_row + lane % 16) * 128 + (lane / 16 ^ (lane & 7)) * 16;
    const int w_down_lane_row = warp_col + lane % 8 + lane / 16 * 8;
    const unsigned w_down_lane = kBytesA + w_down_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;

    unsigned left[2][kPieces][4];
    unsigned right[2][kCols / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            load_matrices(left[half][down], stage + (linear_8_left_lane ^ step * 2) + down * 16 * 128);
        }
#pragma unroll
        for (int along = 0; along < kCols / 16; ++along) {
            load_matrices(right[half][along], stage + (w_down_lane ^ step * 2) + along * 16 * 128);
        }
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
                fetch(ahead, filling, step / 16);  // into the stage that all warps have left
            } else {
                fetch(ahead, filling, step / 16);
                asm volatile("cp.async.commit_group;");
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
#pragma unroll
                for (int along = 0; along < kCols / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_f16(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
    }
#endif

    auto result = [&](float total, long long row, long long col) {
        return __half2float(add_4[row * image_size2 + col]) +
                __half2float(image_mod[(row / image_size1) * (6 * image_size2) + 5 * image_size2 + col]) *
                (total + __half2float(b_down[col]));
    };

    if (image_size2 % kWord == 0 && reinterpret_cast<unsigned long long>(layer_norm_3_in) % 16 == 0) {
        // By way of shared memory, so that a warp stores whole 16-byte words of few rows.
        constexpr int kPitch = kCols + 8;  // 8 more: no bank twice
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // slices are done with
        __half* const staged = reinterpret_cast<__half*>(shared) + warp * 16 * kPitch;
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            const int top = first_row + warp_row + down * kApart;
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    __half2* const to = reinterpret_cast<__half2*>(
                        &staged[(half * 8 + lane / 4) * kPitch + along * 8 + lane % 4 * 2]);
                    const int row = top + half * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2;
                    if (row < rows &&
                            col < image_size2) *to = __floats2half2_rn(result(sums[down][along][half * 2], row,
                            col), result(sums[down][along][half * 2 + 1], row, col + 1));
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane * kWord; at < 16 * kCols; at += 32 * kWord) {
                const int row = top + at / kCols;
                const int col = first_col + warp_col + at % kCols;
                const uint4 word = *reinterpret_cast<const uint4*>(&staged[at / kCols * kPitch + at % kCols]);
                __half* const to = layer_norm_3_in + static_cast<long long>(row) * image_size2 + col;
                if (row < rows && col < image_size2) *reinterpret_cast<uint4*>(to) = word;
            }
            __syncwarp();
        }
    } else {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int row = first_row + warp_row + down * kApart + part / 2 * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2 + part % 2;
                    if (row >= rows || col >= image_size2) continue;
                    layer_norm_3_in[static_cast<long long>(row) * image_size2 + col] =
                            __float2half(result(sums[down][along][part], row, col));
                }
            }
        }
    }
#endif
}

// Copies of linear_8_left and w_down whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
__global__ void __launch_bounds__(256) step_layer_norm_3_in_pad(
        const __half* __restrict__ linear_8_left, const __half* __restrict__ w_down,
        __half* __restrict__ linear_8_left_padded, __half* __restrict__ w_down_padded, int image_size0,
        int image_size1, int image_size2, int w_up_size0) {
    const int rows = image_size0 * image_size1;

    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (blockIdx.y == 0) {
        pad_word(linear_8_left, linear_8_left_padded, rows, w_up_size0, at);
    } else {
        pad_word(w_down, w_down_padded, image_size2, w_up_size0, at);
    }
}

template <typename Index>
__global__ void __launch_bounds__(256) step_layer_norm_3_in_general(
        const __half* __restrict__ add_4, const __half* __restrict__ image_mod,
        const __half* __restrict__ b_down, const __half* __restrict__ linear_8_left,
        const __half* __restrict__ w_down, __half* __restrict__ layer_norm_3_in, Index image_size0,
        Index image_size1, Index image_size2, Index w_up_size0) {
    const Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= image_size0 * image_size1 * image_size2) return;
    const Index i = at / (image_size1 * image_size2);
    const Index j = at / image_size2 % image_size1;
    const Index k = at % image_size2;
    float linear_8_product = 0.0f;
    for (Index l = 0; l < w_up_size0; ++l) {
        linear_8_product += __half2float(linear_8_left[i * (image_size1 * w_up_size0) + j * w_up_size0 + l]) *
                __half2float(w_down[k * w_up_size0 + l]);
    }
    layer_norm_3_in[at] = __float2half(__half2float(add_4[at]) +
            __half2float(image_mod[i * (6 * image_size2) + 5 * image_size2 + k]) *
            (linear_8_product + __half2float(b_down[k])));
}

// linear_9_product[i, j, k] = sum[l] linear_9_left[i, j, l] * w_last[k, l]
//
// A block computes a tile of kTileM x kTileN, a warp kWarpM x kWarpN of that: built for sm_90a by wgmma, else by
// mma.sync. kStages slices of both operands are in shared memory or on their way to it. Rows of linear_9_left and w_last in memory are
// whole 16-byte words, if need be with zeros at their ends. kThroughL1: neighbours in a row share lines.
template <int kTileM, int kTileN, int kWarpM, int kWarpN, int kStages, int kBlocks, bool kThroughL1>
__global__ void __launch_bounds__(kTileM / kWarpM * (kTileN / kWarpN) * 32, kBlocks) step_linear_9_product_kernel(
        const __half* __restrict__ linear_9_left, const __half* __restrict__ w_last,
        __half* __restrict__ linear_9_product, int image_size0, int image_size1, int image_size2) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, no GPU has the shared memory that a launch asks for
    constexpr int kTileK = 64;
    constexpr int kWord = 8;  // elements of linear_9_product in 16 bytes
    constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32;
    constexpr int kBytesA = kTileM * kTileK * 2;
    constexpr int kBytesB = kTileK * kTileN * 2;
    constexpr int kStageBytes = kBytesA + kBytesB;
    extern __shared__ __align__(1024) char shared[];
    const int rows = image_size0 * image_size1;

    const int linear_9_left_leading = (image_size2 + 7) / 8 * 8, w_last_leading = (image_size2 + 7) / 8 * 8;
    const int tile_rows = (rows + kTileM - 1) / kTileM;
    const int tile_cols = (64 + kTileN - 1) / kTileN;
    const int tile = blockIdx.x;
    // Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
    const int band = tile / (8 * tile_cols) * 8;
    const int band_rows = min(tile_rows - band, 8);
    const int in_band = tile - band * tile_cols;
    const int first_row = (band + in_band % band_rows) * kTileM;
    const int first_col = in_band / band_rows * kTileN;

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // A warpgroup computes pieces of 64 rows, each of its four warps 16 rows of one.
    constexpr int kPieces = kTileM * 128 / kThreads / 64, kCols = kTileN;
    constexpr int kApart = 64;  // rows between two pieces of a warp
    const int warp_row = warp / 4 * kPieces * 64 + warp % 4 * 16;
    const int warp_col = 0;
#else
    constexpr int kPieces = kWarpM / 16, kCols = kWarpN;  // pieces of 16 rows, and the columns of a warp
    constexpr int kApart = 16;
    const int warp_row = warp / (kTileN / kWarpN) * kWarpM;
    const int warp_col = warp % (kTileN / kWarpN) * kWarpN;
#endif
    const unsigned shared_at = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    // Copies of this thread. Slices lie in rows of 128 bytes, whose 16-byte pieces are permuted by the row: eight rows
    // of one column are then in different banks. The rows of a thread are a multiple of 8 apart, so one permutation
    // serves them all. What lies beyond the last row or column is read from the last one: those sums are never stored.
    // Beyond the last image_size2 are zeros.
    constexpr int kCopies_linear_9_left = kTileM * kTileK / 8 / kThreads;
    constexpr int kApart_linear_9_left = kThreads / 8;  // rows of linear_9_left between two copies of a thread
    const int linear_9_left_row = threadIdx.x / 8;
    const int linear_9_left_depth = threadIdx.x % 8 * 8;
    const unsigned linear_9_left_to = linear_9_left_row * 128 + (threadIdx.x % 8 ^ (linear_9_left_row & 7)) * 16;
    const __half* linear_9_left_from[kCopies_linear_9_left];
#pragma unroll
    for (int nth = 0; nth < kCopies_linear_9_left; ++nth) {
        const long long row = min(first_row + linear_9_left_row + nth * kApart_linear_9_left, rows - 1);
        linear_9_left_from[nth] = linear_9_left + row * linear_9_left_leading + linear_9_left_depth;
    }
    constexpr int kCopies_w_last = kTileN * kTileK / 8 / kThreads;
    constexpr int kApart_w_last = kThreads / 8;  // rows of w_last between two copies of a thread
    const int w_last_row = threadIdx.x / 8;
    const int w_last_depth = threadIdx.x % 8 * 8;
    const unsigned w_last_to = kBytesA + w_last_row * 128 + (threadIdx.x % 8 ^ (w_last_row & 7)) * 16;
    const __half* w_last_from[kCopies_w_last];
#pragma unroll
    for (int nth = 0; nth < kCopies_w_last; ++nth) {
        const long long row = min(first_col + w_last_row + nth * kApart_w_last, 64 - 1);
        w_last_from[nth] = w_last + row * w_last_leading + w_last_depth;
    }

    constexpr int kFetches = 4;  // parts of a slice, so that copies are spread over the products of another
    auto fetch = [&](int from, unsigned to, int fetched) {
#pragma unroll
        for (int nth = fetched * kCopies_linear_9_left / kFetches;
                nth < (fetched + 1) * kCopies_linear_9_left / kFetches; ++nth) {
            const unsigned place = to + linear_9_left_to + nth * kApart_linear_9_left * 128;
            copy16<kThroughL1>(place, linear_9_left_from[nth], from + linear_9_left_depth < image_size2);
            linear_9_left_from[nth] += kTileK;
        }
#pragma unroll
        for (int nth = fetched * kCopies_w_last / kFetches; nth < (fetched + 1) * kCopies_w_last / kFetches; ++nth) {
            const unsigned place = to + w_last_to + nth * kApart_w_last * 128;
            copy16<kThroughL1>(place, w_last_from[nth], from + w_last_depth < image_size2);
            w_last_from[nth] += kTileK;
        }
    };

    float sums[kPieces][kCols / 8][4] = {};
    const int slices = (image_size2 + kTileK - 1) / kTileK;
    int ahead = 0;  // where the next slice begins that is not under way
    unsigned reading = shared_at;
    const unsigned shared_end = shared_at + kStages * kStageBytes;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
    for (int stage = 0; stage < kStages - 2; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 2) * kStageBytes;
    for (int slice = 0; slice < slices; ++slice) {
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads past the cache of generic stores
        __syncthreads();
        // The products of the slice before are still under way: all warps have left the one before that.
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
                const unsigned long long left =
                        matrix_descriptor(reading + (warp_row / 64 + down) * 64 * 128 + step * 2);
                const unsigned long long right = matrix_descriptor(reading + kBytesA + step * 2);
                wgmma_f16<0, 0>(sums[down], left, right);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, filling, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
        reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int down = 0; down < kPieces; ++down) {
#pragma unroll
        for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
            for (int part = 0; part < 4; ++part) asm volatile("" : "+f"(sums[down][along][part]));  // not read before
        }
    }
#else
    // Where this lane's fragments lie. With a step in k or along a row of a slice, only an XOR with a constant changes.
    const unsigned linear_9_left_lane = (warp_row + lane % 16) * 128 + (lane / 16 ^ (lane & 7)) * 16;
    const int w_last_lane_row = warp_col + lane % 8 + lane / 16 * 8;
    const unsigned w_last_lane = kBytesA + w_last_lane_row * 128 + (lane / 8 % 2 ^ (lane & 7)) * 16;

    unsigned left[2][kPieces][4];
    unsigned right[2][kCols / 16][4];
    auto load_fragments = [&](int half, unsigned stage, int step) {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            load_matrices(left[half][down], stage + (linear_9_left_lane ^ step * 2) + down * 16 * 128);
        }
#pragma unroll
        for (int along = 0; along < kCols / 16; ++along) {
            load_matrices(right[half][along], stage + (w_last_lane ^ step * 2) + along * 16 * 128);
        }
    };

#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
#pragma unroll
        for (int part = 0; part < kFetches; ++part) fetch(ahead, shared_at + stage * kStageBytes, part);
        asm volatile("cp.async.commit_group;");
        ahead += kTileK;
    }
    unsigned filling = shared_at + (kStages - 1) * kStageBytes;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load_fragments(0, reading, 0);
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int step = 0; step < kTileK; step += 16) {
            const int half = step / 16 % 2;
            if (step + 16 < kTileK) {
                load_fragments(half ^ 1, reading, step + 16);  // there when these products are done
                fetch(ahead, filling, step / 16);  // into the stage that all warps have left
            } else {
                fetch(ahead, filling, step / 16);
                asm volatile("cp.async.commit_group;");
                asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
                __syncthreads();
                reading = reading + kStageBytes == shared_end ? shared_at : reading + kStageBytes;
                load_fragments(half ^ 1, reading, 0);
            }
#pragma unroll
            for (int down = 0; down < kPieces; ++down) {
#pragma unroll
                for (int along = 0; along < kCols / 8; ++along) {
                    const unsigned* const both = &right[half][along / 2][along % 2 * 2];
                    mma_f16(sums[down][along], left[half][down], both[0], both[1]);
                }
            }
        }
        ahead += kTileK;
        filling = filling + kStageBytes == shared_end ? shared_at : filling + kStageBytes;
    }
#endif

    if (64 % kWord == 0 && reinterpret_cast<unsigned long long>(linear_9_product) % 16 == 0) {
        // By way of shared memory, so that a warp stores whole 16-byte words of few rows.
        constexpr int kPitch = kCols + 8;  // 8 more: no bank twice
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // slices are done with
        __half* const staged = reinterpret_cast<__half*>(shared) + warp * 16 * kPitch;
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
            const int top = first_row + warp_row + down * kApart;
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    __half2* const to = reinterpret_cast<__half2*>(
                        &staged[(half * 8 + lane / 4) * kPitch + along * 8 + lane % 4 * 2]);
                    *to = __floats2half2_rn(sums[down][along][half * 2], sums[down][along][half * 2 + 1]);
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane * kWord; at < 16 * kCols; at += 32 * kWord) {
                const int row = top + at / kCols;
                const int col = first_col + warp_col + at % kCols;
                const uint4 word = *reinterpret_cast<const uint4*>(&staged[at / kCols * kPitch + at % kCols]);
                __half* const to = linear_9_product + static_cast<long long>(row) * 64 + col;
                if (row < rows && col < 64) *reinterpret_cast<uint4*>(to) = word;
            }
            __syncwarp();
        }
    } else {
#pragma unroll
        for (int down = 0; down < kPieces; ++down) {
#pragma unroll
            for (int along = 0; along < kCols / 8; ++along) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int row = first_row + warp_row + down * kApart + part / 2 * 8 + lane / 4;
                    const int col = first_col + warp_col + along * 8 + lane % 4 * 2 + part % 2;
                    if (row >= rows || col >= 64) continue;
                    linear_9_product[static_cast<long long>(row) * 64 + col] = __float2half(sums[down][along][part]);
                }
            }
        }
    }
#endif
}

// Copies of linear_9_left and w_last whose rows are whole 16-byte words, with zeros at their ends: what cp.async can copy.
__global__ void __launch_bounds__(256) step_linear_9_product_pad(
        const __half* __restrict__ linear_9_left, const __half* __restrict__ w_last,
        __half* __restrict__ linear_9_left_padded, __half* __restrict__ w_last_padded, int image_size0,
        int image_size1, int image_size2) {
    const int rows = image_size0 * image_size1;

    const long long at = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (blockIdx.y == 0) {
        pad_word(linear_9_left, linear_9_left_padded, rows, image_size2, at);
    } else {
        pad_word(w_last, w_last_padded, 64, image_size2, at);
    }
}

template <typename Index>
__global__ void __launch_bounds__(256) step_linear_9_product_general(
        const __half* __restrict__ linear_9_left, const __half* __restrict__ w_last,
        __half* __restrict__ linear_9_product, Index image_size0, Index image_size1, Index image_size2) {
    const Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= image_size0 * image_size1 * 64) return;
    const Index i = at / (image_size1 * 64);
    const Index j = at / 64 % image_size1;
    const Index k = at % 64;
    float linear_9_product_sum = 0.0f;
    for (Index l = 0; l < image_size2; ++l) {
        linear_9_product_sum += __half2float(linear_9_left[i * (image_size1 * image_size2) + j * image_size2 + l]) *
                __half2float(w_last[k * image_size2 + l]);
    }
    linear_9_product[at] = __float2half(linear_9_product_sum);
}

template <typename Index>
__global__ void __launch_bounds__(256) step_out_kernel(
        const float* __restrict__ latents, const __half* __restrict__ linear_9_product,
        const __half* __restrict__ b_last, const float* __restrict__ sigma_step,
        const float* __restrict__ guidance, float* __restrict__ out) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const Index at = (static_cast<Index>(blockIdx.x) * 2 + part) * blockDim.x + threadIdx.x;
        if (at >= 4 * 16 * 32 * 2 * 32 * 2) break;
        const Index i = at / (16 * 32 * 2 * 32 * 2);
        const Index j = at / (32 * 2 * 32 * 2) % 16;
        const Index k = at / (2 * 32 * 2) % 32;
        const Index l = at / (32 * 2) % 2;
        const Index m = at / 2 % 32;
        const Index n = at % 2;
        out[at] = latents[i * (16 * 64 * 64) + j * (64 * 64) + (2 * k + l) * 64 + (2 * m + n)] +
                sigma_step[0] *
                (__half2float(linear_9_product[i * (1024 * 64) + (32 * k + m) * 64 + (32 * l + 16 * n + j)]) +
                __half2float(b_last[32 * l + 16 * n + j]) +
                guidance[0] * (__half2float(linear_9_product[(i + 4) * (1024 * 64) + (32 * k + m) * 64 +
                (32 * l + 16 * n + j)]) + __half2float(b_last[32 * l + 16 * n + j]) -
                (__half2float(linear_9_product[i * (1024 * 64) + (32 * k + m) * 64 + (32 * l + 16 * n + j)]) +
                __half2float(b_last[32 * l + 16 * n + j]))));
    }
}

inline bool is_aligned(const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

inline size_t aligned_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Whether no size is below 0 and 64 bits hold the product of those that are not 0.
inline bool are_countable(std::initializer_list<long long> sizes) {
    double product = 1.0;
    for (const long long size : sizes) {
        if (size < 0) return false;
        product *= static_cast<double>(std::max(size, 1LL));
    }
    return product < 9e18;
}

// Whether the GPU has so much shared memory for a block; if so, launches may ask for it.
template <typename Kernel>
bool has_shared(Kernel* kernel, int bytes) {
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess) return true;
    cudaGetLastError();  // another path is taken instead
    return false;
}

// The blocks for `count` elements. More than a grid holds become none, and the launch fails.
inline unsigned grid_of(long long count, int per_block = 1) {
    const long long blocks = (count + per_block - 1) / per_block;
    return blocks <= INT_MAX ? static_cast<unsigned>(blocks) : 0;
}

}  // namespace

extern "C" cudaError_t step_add_1(
        const __half* image, const __half* image_mod, __half* add_1, long long image_size0,
        long long image_size1, long long image_size2, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2})) return cudaErrorInvalidValue;
    if (const long long elements = image_size0 * image_size1; elements > 0) {
        const bool fits_int = elements <= INT_MAX;
        const bool is_packed = image_size2 % 8 == 0 && 6 * image_size2 % 8 == 0 && is_aligned(image, 16) &&
                is_aligned(image_mod, 16) && is_aligned(add_1, 16);
        if (image_size2 <= 128 && fits_int && is_packed) {
            // 8 lanes keep a row of up to 128 elements.
            step_add_1_rows<8, 16, 2, 8><<<grid_of(elements, 16), 128, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 512 && fits_int && is_packed) {
            // A warp keeps a row of up to 512 elements.
            step_add_1_rows<32, 4, 2, 8><<<grid_of(elements, 4), 128, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 1024 && fits_int && is_packed) {
            // A warp keeps a row of up to 1024 elements.
            step_add_1_rows<32, 4, 4, 8><<<grid_of(elements, 4), 128, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 4096 && fits_int && is_packed) {
            // A block keeps a row of up to 4096 elements.
            step_add_1_rows<128, 1, 4, 8><<<grid_of(elements), 128, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 8192 && fits_int && is_packed) {
            // A block keeps a row of up to 8192 elements.
            step_add_1_rows<256, 1, 4, 8><<<grid_of(elements), 256, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 * 2 <= 230400 && fits_int && is_packed &&
                has_shared(step_add_1_shared_rows<512, 8>, image_size2 * 2)) {
            // A block keeps a row in shared memory.
            step_add_1_shared_rows<512, 8><<<grid_of(elements), 512, image_size2 * 2, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 256 && fits_int) {
            // A warp keeps a row of up to 256 elements, read element by element.
            step_add_1_rows<32, 4, 8, 1><<<grid_of(elements, 4), 128, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 1024 && fits_int) {
            // A block keeps a row of up to 1024 elements, read element by element.
            step_add_1_rows<128, 1, 8, 1><<<grid_of(elements), 128, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 4096 && fits_int) {
            // A block keeps a row of up to 4096 elements, read element by element.
            step_add_1_rows<256, 1, 16, 1><<<grid_of(elements), 256, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 8192 && fits_int) {
            // A block keeps a row of up to 8192 elements, read element by element.
            step_add_1_rows<512, 1, 16, 1><<<grid_of(elements), 512, 0, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 * 2 <= 230400 && fits_int &&
                has_shared(step_add_1_shared_rows<512, 1>, image_size2 * 2)) {
            // A block keeps a row in shared memory, read element by element.
            step_add_1_shared_rows<512, 1><<<grid_of(elements), 512, image_size2 * 2, stream>>>(
                    image, image_mod, add_1, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (is_packed) {
            // A block reads a row of any length anew for each pass.
            step_add_1_long_rows<512, 8><<<grid_of(std::min<long long>(elements, INT_MAX)), 512, 0, stream>>>(
                    image, image_mod, add_1, image_size0, image_size1, image_size2);
        } else {
            step_add_1_long_rows<512, 1><<<grid_of(std::min<long long>(elements, INT_MAX)), 512, 0, stream>>>(
                    image, image_mod, add_1, image_size0, image_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

extern "C" cudaError_t step_add_3(
        const __half* text, const __half* text_mod, __half* add_3, long long image_size0,
        long long text_size1, long long image_size2, cudaStream_t stream) {
    if (!are_countable({image_size0, text_size1, image_size2})) return cudaErrorInvalidValue;
    if (const long long elements = image_size0 * text_size1; elements > 0) {
        const bool fits_int = elements <= INT_MAX;
        const bool is_packed = image_size2 % 8 == 0 && 2 * image_size2 % 8 == 0 && is_aligned(text, 16) &&
                is_aligned(text_mod, 16) && is_aligned(add_3, 16);
        if (image_size2 <= 128 && fits_int && is_packed) {
            // 8 lanes keep a row of up to 128 elements.
            step_add_3_rows<8, 16, 2, 8><<<grid_of(elements, 16), 128, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 512 && fits_int && is_packed) {
            // A warp keeps a row of up to 512 elements.
            step_add_3_rows<32, 4, 2, 8><<<grid_of(elements, 4), 128, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 1024 && fits_int && is_packed) {
            // A warp keeps a row of up to 1024 elements.
            step_add_3_rows<32, 4, 4, 8><<<grid_of(elements, 4), 128, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 4096 && fits_int && is_packed) {
            // A block keeps a row of up to 4096 elements.
            step_add_3_rows<128, 1, 4, 8><<<grid_of(elements), 128, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 8192 && fits_int && is_packed) {
            // A block keeps a row of up to 8192 elements.
            step_add_3_rows<256, 1, 4, 8><<<grid_of(elements), 256, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 * 2 <= 230400 && fits_int && is_packed &&
                has_shared(step_add_3_shared_rows<512, 8>, image_size2 * 2)) {
            // A block keeps a row in shared memory.
            step_add_3_shared_rows<512, 8><<<grid_of(elements), 512, image_size2 * 2, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 256 && fits_int) {
            // A warp keeps a row of up to 256 elements, read element by element.
            step_add_3_rows<32, 4, 8, 1><<<grid_of(elements, 4), 128, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 1024 && fits_int) {
            // A block keeps a row of up to 1024 elements, read element by element.
            step_add_3_rows<128, 1, 8, 1><<<grid_of(elements), 128, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 4096 && fits_int) {
            // A block keeps a row of up to 4096 elements, read element by element.
            step_add_3_rows<256, 1, 16, 1><<<grid_of(elements), 256, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 8192 && fits_int) {
            // A block keeps a row of up to 8192 elements, read element by element.
            step_add_3_rows<512, 1, 16, 1><<<grid_of(elements), 512, 0, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 * 2 <= 230400 && fits_int &&
                has_shared(step_add_3_shared_rows<512, 1>, image_size2 * 2)) {
            // A block keeps a row in shared memory, read element by element.
            step_add_3_shared_rows<512, 1><<<grid_of(elements), 512, image_size2 * 2, stream>>>(
                    text, text_mod, add_3, static_cast<int>(image_size0), static_cast<int>(text_size1),
                    static_cast<int>(image_size2));
        } else if (is_packed) {
            // A block reads a row of any length anew for each pass.
            step_add_3_long_rows<512, 8><<<grid_of(std::min<long long>(elements, INT_MAX)), 512, 0, stream>>>(
                    text, text_mod, add_3, image_size0, text_size1, image_size2);
        } else {
            step_add_3_long_rows<512, 1><<<grid_of(std::min<long long>(elements, INT_MAX)), 512, 0, stream>>>(
                    text, text_mod, add_3, image_size0, text_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

// The bytes of device memory that the launch function needs for what its kernels hand on to each other.
extern "C" size_t step_linear_product_workspace(
        long long image_size0, long long image_size1, long long image_size2) {
    return aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half))
            +
            aligned_bytes((image_size2 % 8 >= 1) * image_size2 * ((image_size2 + 7) / 8 * 8) * sizeof(__half));
}

extern "C" cudaError_t step_linear_product(
        const __half* add_1, const __half* w_q, __half* linear_product, long long image_size0,
        long long image_size1, long long image_size2, void* workspace, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2}) || !are_countable({image_size2, image_size2})) {
        return cudaErrorInvalidValue;
    }
    char* place = static_cast<char*>(workspace);
    __half* const add_1_padded = reinterpret_cast<__half*>(place);
    place += aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half));
    __half* const w_q_padded = reinterpret_cast<__half*>(place);
    if (const long long elements = image_size0 * image_size1 * image_size2; elements > 0) {
        const long long tiles_128x256 = (image_size0 * image_size1 + 127) / 128 * ((image_size2 + 255) / 256);
        const long long tiles_64x128 = (image_size0 * image_size1 + 63) / 64 * ((image_size2 + 127) / 128);
        // Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.
        const bool fits_int = elements <= INT_MAX - 256 && image_size2 * image_size2 <= INT_MAX;
        const bool fits_int_2 = image_size2 <= INT_MAX - 4096 && image_size0 * image_size1 <= INT_MAX - 4096 &&
                (image_size0 * image_size1 + 63) / 64 * ((image_size2 + 63) / 64) <= INT_MAX - 4096;
        const bool is_packed = image_size2 % 8 == 0 && is_aligned(add_1, 16) && is_aligned(w_q, 16);
        if (std::min<long long>(image_size0 * image_size1, image_size2) < 16 && elements >= 16384 && fits_int) {
            // Tiles would be mostly empty.
            step_linear_product_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_1, w_q, linear_product, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (std::min<long long>(image_size0 * image_size1, image_size2) < 16 && elements >= 16384) {
            // The same with indices of 64 bits.
            step_linear_product_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_1, w_q, linear_product, image_size0, image_size1, image_size2);
        } else if (tiles_128x256 >= 66 && fits_int_2 && is_packed &&
                has_shared(step_linear_product_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows are whole 16-byte words.
            step_linear_product_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    add_1, w_q, linear_product, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_128x256 >= 66 && fits_int_2 &&
                has_shared(step_linear_product_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows get zeros at their ends first.
            step_linear_product_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), image_size2 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    add_1, w_q, add_1_padded, w_q_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_product_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    add_1_padded, w_q_padded, linear_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && image_size2 % 64 == 0 && is_aligned(add_1, 16) &&
                is_aligned(w_q, 16) &&
                has_shared(step_linear_product_kernel<64, 128, 32, 64, 6, 1, false>, 147456)) {
            // Rows are whole 128-byte lines.
            step_linear_product_kernel<64, 128, 32, 64, 6, 1, false><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    add_1, w_q, linear_product, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && is_packed &&
                has_shared(step_linear_product_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows are whole 16-byte words.
            step_linear_product_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    add_1, w_q, linear_product, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_64x128 <= 132 && fits_int_2 &&
                has_shared(step_linear_product_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows get zeros at their ends first.
            step_linear_product_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), image_size2 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    add_1, w_q, add_1_padded, w_q_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_product_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    add_1_padded, w_q_padded, linear_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int_2 && is_packed &&
                has_shared(step_linear_product_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows are whole 16-byte words.
            step_linear_product_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    add_1, w_q, linear_product, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && fits_int_2 &&
                has_shared(step_linear_product_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows get zeros at their ends first.
            step_linear_product_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), image_size2 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    add_1, w_q, add_1_padded, w_q_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_product_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    add_1_padded, w_q_padded, linear_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int) {
            // Indices of 32 bits reach all elements.
            step_linear_product_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_1, w_q, linear_product, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else {
            step_linear_product_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_1, w_q, linear_product, image_size0, image_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

extern "C" cudaError_t step_attention_q(
        const __half* linear_product, const __half* b_q, const __half* linear_1_product,
        const __half* text_b_q, __half* attention_q, long long image_size0, cudaStream_t stream) {
    if (const long long elements = image_size0 * 24 * 1357 * 64; elements > 0) {
        if (elements <= INT_MAX - 2048 && image_size0 * 1024 * 1536 <= INT_MAX &&
                image_size0 * 333 * 1536 <= INT_MAX) {
            // Indices of 32 bits reach all elements.
            step_attention_q_kernel<int><<<grid_of(elements, 2048), 256, 0, stream>>>(
                    linear_product, b_q, linear_1_product, text_b_q, attention_q, static_cast<int>(image_size0));
        } else {
            step_attention_q_kernel<long long><<<grid_of(elements, 2048), 256, 0, stream>>>(
                    linear_product, b_q, linear_1_product, text_b_q, attention_q, image_size0);
        }
    }
    return cudaGetLastError();
}

extern "C" cudaError_t step_attention(
        const __half* attention_v, const __half* attention_q, const __half* attention_k, __half* attention,
        long long image_size0, long long attention_q_size1, long long attention_q_size2,
        cudaStream_t stream) {
    if (!are_countable({image_size0, attention_q_size1, attention_q_size2})) return cudaErrorInvalidValue;
    if (const long long elements = image_size0 * attention_q_size1 * attention_q_size2; elements > 0) {
        if (attention_q_size1 <= INT_MAX - 4096 && attention_q_size2 <= INT_MAX - 4096 &&
                (attention_q_size2 + 127) / 128 * (image_size0 * attention_q_size1) <= INT_MAX - 4096 &&
                is_aligned(attention_q, 16) && is_aligned(attention_k, 16) && is_aligned(attention_v, 16) &&
                is_aligned(attention, 16)) {
            // Tiles of 128 x 64 scores stay in registers, their softmax is online.
            step_attention_kernel
                    <<<grid_of((attention_q_size2 + 127) / 128 * (image_size0 * attention_q_size1)), 128, 49152, stream>>>(
                    attention_v, attention_q, attention_k, attention, static_cast<int>(attention_q_size1),
                    static_cast<int>(attention_q_size2));
        } else {
            step_attention_rows<<<grid_of(elements, 4), 128, 0, stream>>>(
                    attention_v, attention_q, attention_k, attention, image_size0, attention_q_size1,
                    attention_q_size2);
        }
    }
    return cudaGetLastError();
}

extern "C" cudaError_t step_linear_6_left(
        const __half* attention, __half* linear_6_left, long long image_size0, long long attention_q_size1,
        cudaStream_t stream) {
    if (!are_countable({image_size0, attention_q_size1})) return cudaErrorInvalidValue;
    if (const long long elements = image_size0 * 1024 * attention_q_size1 * 64; elements > 0) {
        // Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.
        const bool fits_int = elements <= INT_MAX - 4096 && image_size0 * attention_q_size1 * 1357 * 64 <= INT_MAX;
        const bool are_aligned = is_aligned(attention, 16) && is_aligned(linear_6_left, 16);
        if (fits_int && are_aligned) {
            // Rows are made of whole packs.
            step_linear_6_left_kernel_rows<int, 256, 8, 2><<<grid_of(elements, 4096), 256, 0, stream>>>(
                    attention, linear_6_left, static_cast<int>(image_size0), static_cast<int>(attention_q_size1));
        } else if (are_aligned) {
            // The same with indices of 64 bits.
            step_linear_6_left_kernel_rows<long long, 256, 8, 2><<<grid_of(elements, 4096), 256, 0, stream>>>(
                    attention, linear_6_left, image_size0, attention_q_size1);
        } else if (fits_int && is_aligned(linear_6_left, 16)) {
            // Whole packs; what is left behind the last one is taken element by element.
            step_linear_6_left_kernel<int, 256, 8, 2><<<grid_of(elements, 4096), 256, 0, stream>>>(
                    attention, linear_6_left, static_cast<int>(image_size0), static_cast<int>(attention_q_size1));
        } else if (is_aligned(linear_6_left, 16)) {
            // The same with indices of 64 bits.
            step_linear_6_left_kernel<long long, 256, 8, 2><<<grid_of(elements, 4096), 256, 0, stream>>>(
                    attention, linear_6_left, image_size0, attention_q_size1);
        } else if (fits_int) {
            // Any length and alignment: element by element.
            step_linear_6_left_kernel<int, 256, 1, 8><<<grid_of(elements, 2048), 256, 0, stream>>>(
                    attention, linear_6_left, static_cast<int>(image_size0), static_cast<int>(attention_q_size1));
        } else {
            step_linear_6_left_kernel<long long, 256, 1, 8><<<grid_of(elements, 2048), 256, 0, stream>>>(
                    attention, linear_6_left, image_size0, attention_q_size1);
        }
    }
    return cudaGetLastError();
}

// The bytes of device memory that the launch function needs for what its kernels hand on to each other.
extern "C" size_t step_add_4_workspace(long long image_size0, long long image_size1, long long image_size2) {
    return aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half))
            +
            aligned_bytes((image_size2 % 8 >= 1) * image_size2 * ((image_size2 + 7) / 8 * 8) * sizeof(__half));
}

extern "C" cudaError_t step_add_4(
        const __half* image, const __half* image_mod, const __half* b_o, const __half* linear_6_left,
        const __half* w_o, __half* add_4, long long image_size0, long long image_size1, long long image_size2,
        void* workspace, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2}) || !are_countable({image_size2, image_size2})) {
        return cudaErrorInvalidValue;
    }
    char* place = static_cast<char*>(workspace);
    __half* const linear_6_left_padded = reinterpret_cast<__half*>(place);
    place += aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half));
    __half* const w_o_padded = reinterpret_cast<__half*>(place);
    if (const long long elements = image_size0 * image_size1 * image_size2; elements > 0) {
        const long long tiles_128x256 = (image_size0 * image_size1 + 127) / 128 * ((image_size2 + 255) / 256);
        const long long tiles_64x128 = (image_size0 * image_size1 + 63) / 64 * ((image_size2 + 127) / 128);
        // Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.
        const bool fits_int = elements <= INT_MAX - 256 && image_size2 * image_size2 <= INT_MAX &&
                image_size0 * 6 * image_size2 <= INT_MAX && image_size2 <= INT_MAX;
        const bool fits_int_2 = image_size2 <= INT_MAX - 4096 && image_size0 * image_size1 <= INT_MAX - 4096 &&
                (image_size0 * image_size1 + 63) / 64 * ((image_size2 + 63) / 64) <= INT_MAX - 4096;
        const bool is_packed = image_size2 % 8 == 0 && is_aligned(linear_6_left, 16) && is_aligned(w_o, 16);
        if (std::min<long long>(image_size0 * image_size1, image_size2) < 16 && elements >= 16384 && fits_int) {
            // Tiles would be mostly empty.
            step_add_4_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (std::min<long long>(image_size0 * image_size1, image_size2) < 16 && elements >= 16384) {
            // The same with indices of 64 bits.
            step_add_4_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, image_size0, image_size1, image_size2);
        } else if (tiles_128x256 >= 66 && fits_int_2 && is_packed &&
                has_shared(step_add_4_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows are whole 16-byte words.
            step_add_4_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_128x256 >= 66 && fits_int_2 &&
                has_shared(step_add_4_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows get zeros at their ends first.
            step_add_4_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), image_size2 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_6_left, w_o, linear_6_left_padded, w_o_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_add_4_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    image, image_mod, b_o, linear_6_left_padded, w_o_padded, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && image_size2 % 64 == 0 && is_aligned(linear_6_left, 16) &&
                is_aligned(w_o, 16) && has_shared(step_add_4_kernel<64, 128, 32, 64, 6, 1, false>, 147456)) {
            // Rows are whole 128-byte lines.
            step_add_4_kernel<64, 128, 32, 64, 6, 1, false><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && is_packed &&
                has_shared(step_add_4_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows are whole 16-byte words.
            step_add_4_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_64x128 <= 132 && fits_int_2 &&
                has_shared(step_add_4_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows get zeros at their ends first.
            step_add_4_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), image_size2 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_6_left, w_o, linear_6_left_padded, w_o_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_add_4_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    image, image_mod, b_o, linear_6_left_padded, w_o_padded, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int_2 && is_packed && has_shared(step_add_4_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows are whole 16-byte words.
            step_add_4_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && fits_int_2 &&
                has_shared(step_add_4_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows get zeros at their ends first.
            step_add_4_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), image_size2 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_6_left, w_o, linear_6_left_padded, w_o_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_add_4_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    image, image_mod, b_o, linear_6_left_padded, w_o_padded, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int) {
            // Indices of 32 bits reach all elements.
            step_add_4_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else {
            step_add_4_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    image, image_mod, b_o, linear_6_left, w_o, add_4, image_size0, image_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

extern "C" cudaError_t step_linear_7_left(
        const __half* add_4, const __half* image_mod, __half* linear_7_left, long long image_size0,
        long long image_size1, long long image_size2, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2})) return cudaErrorInvalidValue;
    if (const long long elements = image_size0 * image_size1; elements > 0) {
        const bool fits_int = elements <= INT_MAX;
        const bool is_packed = image_size2 % 8 == 0 && 6 * image_size2 % 8 == 0 && 4 * image_size2 % 8 == 0 &&
                3 * image_size2 % 8 == 0 && is_aligned(add_4, 16) && is_aligned(image_mod, 16) &&
                is_aligned(linear_7_left, 16);
        if (image_size2 <= 128 && fits_int && is_packed) {
            // 8 lanes keep a row of up to 128 elements.
            step_linear_7_left_rows<8, 16, 2, 8><<<grid_of(elements, 16), 128, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 512 && fits_int && is_packed) {
            // A warp keeps a row of up to 512 elements.
            step_linear_7_left_rows<32, 4, 2, 8><<<grid_of(elements, 4), 128, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 1024 && fits_int && is_packed) {
            // A warp keeps a row of up to 1024 elements.
            step_linear_7_left_rows<32, 4, 4, 8><<<grid_of(elements, 4), 128, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 4096 && fits_int && is_packed) {
            // A block keeps a row of up to 4096 elements.
            step_linear_7_left_rows<128, 1, 4, 8><<<grid_of(elements), 128, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 8192 && fits_int && is_packed) {
            // A block keeps a row of up to 8192 elements.
            step_linear_7_left_rows<256, 1, 4, 8><<<grid_of(elements), 256, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 * 2 <= 230400 && fits_int && is_packed &&
                has_shared(step_linear_7_left_shared_rows<512, 8>, image_size2 * 2)) {
            // A block keeps a row in shared memory.
            step_linear_7_left_shared_rows<512, 8><<<grid_of(elements), 512, image_size2 * 2, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 256 && fits_int) {
            // A warp keeps a row of up to 256 elements, read element by element.
            step_linear_7_left_rows<32, 4, 8, 1><<<grid_of(elements, 4), 128, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 1024 && fits_int) {
            // A block keeps a row of up to 1024 elements, read element by element.
            step_linear_7_left_rows<128, 1, 8, 1><<<grid_of(elements), 128, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 4096 && fits_int) {
            // A block keeps a row of up to 4096 elements, read element by element.
            step_linear_7_left_rows<256, 1, 16, 1><<<grid_of(elements), 256, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 <= 8192 && fits_int) {
            // A block keeps a row of up to 8192 elements, read element by element.
            step_linear_7_left_rows<512, 1, 16, 1><<<grid_of(elements), 512, 0, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (image_size2 * 2 <= 230400 && fits_int &&
                has_shared(step_linear_7_left_shared_rows<512, 1>, image_size2 * 2)) {
            // A block keeps a row in shared memory, read element by element.
            step_linear_7_left_shared_rows<512, 1><<<grid_of(elements), 512, image_size2 * 2, stream>>>(
                    add_4, image_mod, linear_7_left, static_cast<int>(image_size0), static_cast<int>(image_size1),
                    static_cast<int>(image_size2));
        } else if (is_packed) {
            // A block reads a row of any length anew for each pass.
            step_linear_7_left_long_rows<512, 8><<<grid_of(std::min<long long>(elements, INT_MAX)), 512, 0, stream>>>(
                    add_4, image_mod, linear_7_left, image_size0, image_size1, image_size2);
        } else {
            step_linear_7_left_long_rows<512, 1><<<grid_of(std::min<long long>(elements, INT_MAX)), 512, 0, stream>>>(
                    add_4, image_mod, linear_7_left, image_size0, image_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

// The bytes of device memory that the launch function needs for what its kernels hand on to each other.
extern "C" size_t step_linear_8_left_workspace(
        long long w_up_size0, long long image_size0, long long image_size1, long long image_size2) {
    return aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half))
            +
            aligned_bytes((image_size2 % 8 >= 1) * w_up_size0 * ((image_size2 + 7) / 8 * 8) * sizeof(__half));
}

extern "C" cudaError_t step_linear_8_left(
        const __half* b_up, const __half* linear_7_left, const __half* w_up, __half* linear_8_left,
        long long w_up_size0, long long image_size0, long long image_size1, long long image_size2,
        void* workspace, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2}) ||
            !are_countable({w_up_size0, image_size0, image_size1}) || !are_countable({w_up_size0, image_size2})) {
        return cudaErrorInvalidValue;
    }
    char* place = static_cast<char*>(workspace);
    __half* const linear_7_left_padded = reinterpret_cast<__half*>(place);
    place += aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half));
    __half* const w_up_padded = reinterpret_cast<__half*>(place);
    if (const long long elements = image_size0 * image_size1 * w_up_size0; elements > 0) {
        const long long tiles_128x256 = (image_size0 * image_size1 + 127) / 128 * ((w_up_size0 + 255) / 256);
        const long long tiles_64x128 = (image_size0 * image_size1 + 63) / 64 * ((w_up_size0 + 127) / 128);
        // Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.
        const bool fits_int = elements <= INT_MAX - 256 && image_size0 * image_size1 * image_size2 <= INT_MAX &&
                w_up_size0 * image_size2 <= INT_MAX && w_up_size0 <= INT_MAX;
        const bool fits_int_2 = w_up_size0 <= INT_MAX - 4096 && image_size2 <= INT_MAX - 4096 &&
                image_size0 * image_size1 <= INT_MAX - 4096 &&
                (image_size0 * image_size1 + 63) / 64 * ((w_up_size0 + 63) / 64) <= INT_MAX - 4096;
        const bool is_packed = image_size2 % 8 == 0 && is_aligned(linear_7_left, 16) && is_aligned(w_up, 16);
        if (std::min<long long>(image_size0 * image_size1, w_up_size0) < 16 && elements >= 16384 && fits_int) {
            // Tiles would be mostly empty.
            step_linear_8_left_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (std::min<long long>(image_size0 * image_size1, w_up_size0) < 16 && elements >= 16384) {
            // The same with indices of 64 bits.
            step_linear_8_left_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, w_up_size0, image_size0, image_size1, image_size2);
        } else if (tiles_128x256 >= 66 && fits_int_2 && is_packed &&
                has_shared(step_linear_8_left_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows are whole 16-byte words.
            step_linear_8_left_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_128x256 >= 66 && fits_int_2 &&
                has_shared(step_linear_8_left_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows get zeros at their ends first.
            step_linear_8_left_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), w_up_size0 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_7_left, w_up, linear_7_left_padded, w_up_padded, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_8_left_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    b_up, linear_7_left_padded, w_up_padded, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && image_size2 % 64 == 0 && is_aligned(linear_7_left, 16) &&
                is_aligned(w_up, 16) &&
                has_shared(step_linear_8_left_kernel<64, 128, 32, 64, 6, 1, false>, 147456)) {
            // Rows are whole 128-byte lines.
            step_linear_8_left_kernel<64, 128, 32, 64, 6, 1, false><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && is_packed &&
                has_shared(step_linear_8_left_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows are whole 16-byte words.
            step_linear_8_left_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_64x128 <= 132 && fits_int_2 &&
                has_shared(step_linear_8_left_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows get zeros at their ends first.
            step_linear_8_left_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), w_up_size0 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_7_left, w_up, linear_7_left_padded, w_up_padded, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_8_left_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    b_up, linear_7_left_padded, w_up_padded, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int_2 && is_packed &&
                has_shared(step_linear_8_left_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows are whole 16-byte words.
            step_linear_8_left_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && fits_int_2 &&
                has_shared(step_linear_8_left_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows get zeros at their ends first.
            step_linear_8_left_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), w_up_size0 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_7_left, w_up, linear_7_left_padded, w_up_padded, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_8_left_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    b_up, linear_7_left_padded, w_up_padded, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int) {
            // Indices of 32 bits reach all elements.
            step_linear_8_left_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, static_cast<int>(w_up_size0),
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else {
            step_linear_8_left_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    b_up, linear_7_left, w_up, linear_8_left, w_up_size0, image_size0, image_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

// The bytes of device memory that the launch function needs for what its kernels hand on to each other.
extern "C" size_t step_layer_norm_3_in_workspace(
        long long image_size0, long long image_size1, long long image_size2, long long w_up_size0) {
    return aligned_bytes((w_up_size0 % 8 >= 1) * (image_size0 * image_size1) * ((w_up_size0 + 7) / 8 * 8) *
            sizeof(__half))
            +
            aligned_bytes((w_up_size0 % 8 >= 1) * image_size2 * ((w_up_size0 + 7) / 8 * 8) * sizeof(__half));
}

extern "C" cudaError_t step_layer_norm_3_in(
        const __half* add_4, const __half* image_mod, const __half* b_down, const __half* linear_8_left,
        const __half* w_down, __half* layer_norm_3_in, long long image_size0, long long image_size1,
        long long image_size2, long long w_up_size0, void* workspace, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2}) ||
            !are_countable({image_size0, image_size1, w_up_size0}) || !are_countable({image_size2, w_up_size0})) {
        return cudaErrorInvalidValue;
    }
    char* place = static_cast<char*>(workspace);
    __half* const linear_8_left_padded = reinterpret_cast<__half*>(place);
    place += aligned_bytes((w_up_size0 % 8 >= 1) * (image_size0 * image_size1) * ((w_up_size0 + 7) / 8 * 8) *
            sizeof(__half));
    __half* const w_down_padded = reinterpret_cast<__half*>(place);
    if (const long long elements = image_size0 * image_size1 * image_size2; elements > 0) {
        const long long tiles_128x256 = (image_size0 * image_size1 + 127) / 128 * ((image_size2 + 255) / 256);
        const long long tiles_64x128 = (image_size0 * image_size1 + 63) / 64 * ((image_size2 + 127) / 128);
        // Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.
        const bool fits_int = elements <= INT_MAX - 256 && image_size0 * image_size1 * w_up_size0 <= INT_MAX &&
                image_size2 * w_up_size0 <= INT_MAX && image_size0 * 6 * image_size2 <= INT_MAX &&
                image_size2 <= INT_MAX;
        const bool fits_int_2 = image_size2 <= INT_MAX - 4096 && w_up_size0 <= INT_MAX - 4096 &&
                image_size0 * image_size1 <= INT_MAX - 4096 &&
                (image_size0 * image_size1 + 63) / 64 * ((image_size2 + 63) / 64) <= INT_MAX - 4096;
        const bool is_packed = w_up_size0 % 8 == 0 && is_aligned(linear_8_left, 16) && is_aligned(w_down, 16);
        if (std::min<long long>(image_size0 * image_size1, image_size2) < 16 && elements >= 16384 && fits_int) {
            // Tiles would be mostly empty.
            step_layer_norm_3_in_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
        } else if (std::min<long long>(image_size0 * image_size1, image_size2) < 16 && elements >= 16384) {
            // The same with indices of 64 bits.
            step_layer_norm_3_in_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, image_size0, image_size1,
                    image_size2, w_up_size0);
        } else if (tiles_128x256 >= 66 && fits_int_2 && is_packed &&
                has_shared(step_layer_norm_3_in_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows are whole 16-byte words.
            step_layer_norm_3_in_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
        } else if (w_up_size0 % 8 >= 1 && w_up_size0 >= 1 && tiles_128x256 >= 66 && fits_int_2 &&
                has_shared(step_layer_norm_3_in_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows get zeros at their ends first.
            step_layer_norm_3_in_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((w_up_size0 + 7) / 8), image_size2 * ((w_up_size0 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_8_left, w_down, linear_8_left_padded, w_down_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
            step_layer_norm_3_in_kernel<128, 256, 64, 64, 4, 1, false><<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    add_4, image_mod, b_down, linear_8_left_padded, w_down_padded, layer_norm_3_in,
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2),
                    static_cast<int>(w_up_size0));
        } else if (tiles_64x128 <= 132 && fits_int_2 && w_up_size0 % 64 == 0 && is_aligned(linear_8_left, 16) &&
                is_aligned(w_down, 16) &&
                has_shared(step_layer_norm_3_in_kernel<64, 128, 32, 64, 6, 1, false>, 147456)) {
            // Rows are whole 128-byte lines.
            step_layer_norm_3_in_kernel<64, 128, 32, 64, 6, 1, false><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
        } else if (tiles_64x128 <= 132 && fits_int_2 && is_packed &&
                has_shared(step_layer_norm_3_in_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows are whole 16-byte words.
            step_layer_norm_3_in_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
        } else if (w_up_size0 % 8 >= 1 && w_up_size0 >= 1 && tiles_64x128 <= 132 && fits_int_2 &&
                has_shared(step_layer_norm_3_in_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows get zeros at their ends first.
            step_layer_norm_3_in_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((w_up_size0 + 7) / 8), image_size2 * ((w_up_size0 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_8_left, w_down, linear_8_left_padded, w_down_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
            step_layer_norm_3_in_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    add_4, image_mod, b_down, linear_8_left_padded, w_down_padded, layer_norm_3_in,
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2),
                    static_cast<int>(w_up_size0));
        } else if (fits_int_2 && is_packed &&
                has_shared(step_layer_norm_3_in_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows are whole 16-byte words.
            step_layer_norm_3_in_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
        } else if (w_up_size0 % 8 >= 1 && w_up_size0 >= 1 && fits_int_2 &&
                has_shared(step_layer_norm_3_in_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows get zeros at their ends first.
            step_layer_norm_3_in_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((w_up_size0 + 7) / 8), image_size2 * ((w_up_size0 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_8_left, w_down, linear_8_left_padded, w_down_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
            step_layer_norm_3_in_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    add_4, image_mod, b_down, linear_8_left_padded, w_down_padded, layer_norm_3_in,
                    static_cast<int>(image_size0), static_cast<int>(image_size1), static_cast<int>(image_size2),
                    static_cast<int>(w_up_size0));
        } else if (fits_int) {
            // Indices of 32 bits reach all elements.
            step_layer_norm_3_in_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2), static_cast<int>(w_up_size0));
        } else {
            step_layer_norm_3_in_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    add_4, image_mod, b_down, linear_8_left, w_down, layer_norm_3_in, image_size0, image_size1,
                    image_size2, w_up_size0);
        }
    }
    return cudaGetLastError();
}

// The bytes of device memory that the launch function needs for what its kernels hand on to each other.
extern "C" size_t step_linear_9_product_workspace(
        long long image_size0, long long image_size1, long long image_size2) {
    return aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half))
            +
            aligned_bytes((image_size2 % 8 >= 1) * 64 * ((image_size2 + 7) / 8 * 8) * sizeof(__half));
}

extern "C" cudaError_t step_linear_9_product(
        const __half* linear_9_left, const __half* w_last, __half* linear_9_product, long long image_size0,
        long long image_size1, long long image_size2, void* workspace, cudaStream_t stream) {
    if (!are_countable({image_size0, image_size1, image_size2})) return cudaErrorInvalidValue;
    char* place = static_cast<char*>(workspace);
    __half* const linear_9_left_padded = reinterpret_cast<__half*>(place);
    place += aligned_bytes((image_size2 % 8 >= 1) * (image_size0 * image_size1) * ((image_size2 + 7) / 8 * 8) *
            sizeof(__half));
    __half* const w_last_padded = reinterpret_cast<__half*>(place);
    if (const long long elements = image_size0 * image_size1 * 64; elements > 0) {
        const long long tiles_128x256 = (image_size0 * image_size1 + 127) / 128;
        const long long tiles_64x128 = (image_size0 * image_size1 + 63) / 64;
        // Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.
        const bool fits_int = elements <= INT_MAX - 256 && image_size0 * image_size1 * image_size2 <= INT_MAX &&
                64 * image_size2 <= INT_MAX;
        const bool fits_int_2 = image_size2 <= INT_MAX - 4096 && image_size0 * image_size1 <= INT_MAX - 4096 &&
                tiles_64x128 <= INT_MAX - 4096;
        const bool is_packed = image_size2 % 8 == 0 && is_aligned(linear_9_left, 16) && is_aligned(w_last, 16);
        if (image_size0 * image_size1 < 16 && elements >= 16384 && fits_int) {
            // Tiles would be mostly empty.
            step_linear_9_product_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size0 * image_size1 < 16 && elements >= 16384) {
            // The same with indices of 64 bits.
            step_linear_9_product_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_product, image_size0, image_size1, image_size2);
        } else if (tiles_128x256 >= 66 && fits_int_2 && is_packed &&
                has_shared(step_linear_9_product_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows are whole 16-byte words.
            step_linear_9_product_kernel<128, 256, 64, 64, 4, 1, false>
                    <<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    linear_9_left, w_last, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_128x256 >= 66 && fits_int_2 &&
                has_shared(step_linear_9_product_kernel<128, 256, 64, 64, 4, 1, false>, 196608)) {
            // Rows get zeros at their ends first.
            step_linear_9_product_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), 64 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_left_padded, w_last_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_9_product_kernel<128, 256, 64, 64, 4, 1, false>
                    <<<grid_of(tiles_128x256), 256, 196608, stream>>>(
                    linear_9_left_padded, w_last_padded, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && image_size2 % 64 == 0 && is_aligned(linear_9_left, 16) &&
                is_aligned(w_last, 16) &&
                has_shared(step_linear_9_product_kernel<64, 128, 32, 64, 6, 1, false>, 147456)) {
            // Rows are whole 128-byte lines.
            step_linear_9_product_kernel<64, 128, 32, 64, 6, 1, false><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    linear_9_left, w_last, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (tiles_64x128 <= 132 && fits_int_2 && is_packed &&
                has_shared(step_linear_9_product_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows are whole 16-byte words.
            step_linear_9_product_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    linear_9_left, w_last, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && tiles_64x128 <= 132 && fits_int_2 &&
                has_shared(step_linear_9_product_kernel<64, 128, 32, 64, 6, 1, true>, 147456)) {
            // Rows get zeros at their ends first.
            step_linear_9_product_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), 64 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_left_padded, w_last_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_9_product_kernel<64, 128, 32, 64, 6, 1, true><<<grid_of(tiles_64x128), 128, 147456, stream>>>(
                    linear_9_left_padded, w_last_padded, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int_2 && is_packed &&
                has_shared(step_linear_9_product_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows are whole 16-byte words.
            step_linear_9_product_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    linear_9_left, w_last, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (image_size2 % 8 >= 1 && image_size2 >= 1 && fits_int_2 &&
                has_shared(step_linear_9_product_kernel<64, 128, 32, 64, 4, 2, false>, 98304)) {
            // Rows get zeros at their ends first.
            step_linear_9_product_pad
                    <<<dim3(grid_of(std::max<long long>(image_size0 * image_size1 * ((image_size2 + 7) / 8), 64 * ((image_size2 + 7) / 8)), 256), 2), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_left_padded, w_last_padded, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
            step_linear_9_product_kernel<64, 128, 32, 64, 4, 2, false><<<grid_of(tiles_64x128), 128, 98304, stream>>>(
                    linear_9_left_padded, w_last_padded, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else if (fits_int) {
            // Indices of 32 bits reach all elements.
            step_linear_9_product_general<int><<<grid_of(elements, 256), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_product, static_cast<int>(image_size0),
                    static_cast<int>(image_size1), static_cast<int>(image_size2));
        } else {
            step_linear_9_product_general<long long><<<grid_of(elements, 256), 256, 0, stream>>>(
                    linear_9_left, w_last, linear_9_product, image_size0, image_size1, image_size2);
        }
    }
    return cudaGetLastError();
}

extern "C" cudaError_t step_out(
        const float* latents, const __half* linear_9_product, const __half* b_last, const float* sigma_step,
        const float* guidance, float* out, cudaStream_t stream) {
    step_out_kernel<int><<<512, 256, 0, stream>>>(latents, linear_9_product, b_last, sigma_step, guidance, out);
    return cudaGetLastError();
}
