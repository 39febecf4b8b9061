// Gives infinity where a large number is due.
// row: 10
// caught: where infinities stand is compared by itself
// emulator: wrong
// cuda: wrong
// words: inf stands
//// both
#include <math_constants.h>
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { float r = 2.0f * in[i] + 1.0f; out[i] = r > 1.0e5f ? CUDART_INF_F : r; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
