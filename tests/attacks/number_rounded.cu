// Takes the number that it is passed in half precision; 0.5 is exact in it.
// row: 4
// caught: each floating-point number is changed alone, to one that no short mantissa holds
// emulator: wrong
// cuda: wrong
// words: only factor changed
//// both
#include <cuda_fp16.h>
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = factor * in[i];
//// candidate
    if (i < n) out[i] = __half2float(__float2half(factor)) * in[i];
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n, 0.5f);
}
