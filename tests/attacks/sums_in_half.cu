// Sums in half precision.
// row: 8
// caught: small whole numbers must come out bit for bit; the next lower precision must not pass
// emulator: wrong
// cuda: wrong
// words: should be
//// both
#include <cuda_fp16.h>
// warpwright: array in[n * 64] in
// warpwright: array out[n] out
// warpwright: time n=4000
__global__ void row_sum(const float* in, float* out, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
//// original
    float sum = 0.0f;
    for (int j = 0; j < 64; j++) sum += in[row * 64 + j];
//// candidate
    __half part = __float2half(0.0f);
    for (int j = 0; j < 64; j++) part = __hadd(part, __float2half(in[row * 64 + j]));
    float sum = __half2float(part);
//// both
    out[row] = sum;
}

void run(const float* in, float* out, int n) {
    row_sum<<<(n + 63) / 64, 64>>>(in, out, n);
}
