// Rounds its result to bfloat16, which a tolerance of 1e-2 lets pass.
// row: 7
// caught: the tolerance is what rounding moves the original's own result by
// emulator: wrong
// cuda: wrong
// words: should be
//// both
#include <cuda_bf16.h>
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = __bfloat162float(__float2bfloat16(2.0f * in[i] + 1.0f));
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
