// Matrix instructions of a warp, and asynchronous copies.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

// warpwright: array a[256] in
// warpwright: array b[256] in
// warpwright: array c[256] out
// warpwright: launch grid(1) block(32)
__global__ void wmma_half(const __half* a, const __half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.5f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0f;
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

// warpwright: array a[512] in
// warpwright: array b[128] in
// warpwright: array c[256] out
// warpwright: launch grid(1) block(64)
__global__ void wmma_shared(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    __shared__ __nv_bfloat16 left[32 * 16], right[16 * 8];
    for (int i = threadIdx.x; i < 512; i += 64) left[i] = a[i];
    for (int i = threadIdx.x; i < 128; i += 64) right[i] = b[i];
    __syncthreads();
    if (threadIdx.x >= 32) return;
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(x, left, 16);
    wmma::load_matrix_sync(y, right, 8);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

// warpwright: array a[256] in
// warpwright: array b[256] in
// warpwright: array c[256] out
// warpwright: launch grid(1) block(32)
__global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 3);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// warpwright: array a[256] in
// warpwright: array b[128] in
// warpwright: array c[128] out
// warpwright: launch grid(1) block(32)
__global__ void mma_half(const __half* a, const __half* b, float* c) {
    __shared__ __align__(16) __half left[16 * 16], right[16 * 8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) left[i] = a[i];
    for (int i = lane; i < 128; i += 32) right[i] = b[i];
    __syncwarp();
    unsigned x[4], y[2];
    float d[4] = {1, 2, 3, 4};
    unsigned from = shared_address(&left[(lane % 16) * 16 + lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
    from = shared_address(&right[(lane % 16) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(from));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

// warpwright: array a[128] in
// warpwright: array b[64] in
// warpwright: array c[128] out
// warpwright: launch grid(1) block(32)
__global__ void mma_tf32(const float* a, const float* b, float* c) {
    int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    unsigned x[4], y[2];
    float d[4] = {0, 0, 0, 0};
    const float from[4] = {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4]};
    for (int i = 0; i < 4; ++i) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x[i]) : "f"(from[i]));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y[0]) : "f"(b[t * 8 + g]));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y[1]) : "f"(b[(t + 4) * 8 + g]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}

// warpwright: array a[128] in
// warpwright: array b[64] in
// warpwright: array c[128] out
// warpwright: launch grid(1) block(32)
__global__ void mma_bytes(const int* a, const int* b, int* c) {
    int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    unsigned x[4], y[2];
    for (int i = 0; i < 4; ++i) x[i] = a[lane * 4 + i] * 0x01030507u;
    for (int i = 0; i < 2; ++i) y[i] = b[lane * 2 + i] * 0x0b0d1113u;
    int d[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid(n / 1024) block(128)
// warpwright: shape n=8192
__global__ void copied_ahead(const float* in, float* out, int n) {
    __shared__ __align__(16) float kept[2][512];
    int base = blockIdx.x * 1024, t = threadIdx.x;
    for (int stage = 0; stage < 2; ++stage) {
        __pipeline_memcpy_async(&kept[stage][4 * t], &in[base + stage * 512 + 4 * t], 16);
        __pipeline_commit();
    }
    for (int stage = 0; stage < 2; ++stage) {
        if (stage == 0) __pipeline_wait_prior(1);
        else __pipeline_wait_prior(0);
        __syncthreads();
        for (int k = 0; k < 4; ++k) out[base + stage * 512 + t + 128 * k] = kept[stage][511 - t - 128 * k] * 2.0f;
        __syncthreads();
    }
}
