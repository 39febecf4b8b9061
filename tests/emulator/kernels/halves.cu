// f16 and bf16, alone and in pairs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 6] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void half_arithmetic(const __half* a, const __half* b, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    out[6 * i + 0] = __hadd(x, y);
    out[6 * i + 1] = __hmul(x, y);
    out[6 * i + 2] = __hfma(x, y, x);
    out[6 * i + 3] = __hmax(x, y);
    out[6 * i + 4] = __hdiv(x, y);
    out[6 * i + 5] = __float2half_rn(__half2float(x) * 3.0f + 0.1f);
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 4] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void half_pairs(const __half2* a, const __half2* b, __half2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = a[i], y = b[i];
    out[4 * i + 0] = __hadd2(x, y);
    out[4 * i + 1] = __hfma2(x, y, x);
    out[4 * i + 2] = __hmin2(x, __hneg2(y));
    out[4 * i + 3] = __float22half2_rn(__half22float2(__hmul2(x, y)));
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 5] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void bfloats(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 x = a[i], y = b[i];
    out[5 * i + 0] = __hadd(x, y);
    out[5 * i + 1] = __hmul(x, y);
    out[5 * i + 2] = __hfma(x, y, x);
    out[5 * i + 3] = __hmax(x, y);
    out[5 * i + 4] = __float2bfloat16_rn(__bfloat162float(x) / 3.0f);
}

// warpwright: array x[rows * columns] in
// warpwright: array out[rows * columns] out
// warpwright: launch grid(rows) block(128)
// warpwright: shape rows=7 columns=333
__global__ void half_softmax(const __half* x, __half* out, int rows, int columns) {
    __shared__ float partial[4];
    const __half* row = x + blockIdx.x * columns;
    float most = -INFINITY;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) most = fmaxf(most, __half2float(row[c]));
    for (int step = 16; step; step >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = most;
    __syncthreads();
    most = fmaxf(fmaxf(partial[0], partial[1]), fmaxf(partial[2], partial[3]));
    __syncthreads();
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += exp2f((__half2float(row[c]) - most) * 1.4426950f);
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = partial[0] + partial[1] + partial[2] + partial[3];
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[blockIdx.x * columns + c] = __float2half_rn(exp2f((__half2float(row[c]) - most) * 1.4426950f) / sum);
}
