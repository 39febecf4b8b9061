// Writes half-precision numbers where floats are due.
// row: 13
// caught: every byte of an output is compared as the original's type
// emulator: wrong
// cuda: wrong
//// both
#include <cuda_fp16.h>
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) reinterpret_cast<__half*>(out)[i] = __float2half(2.0f * in[i] + 1.0f);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
