// Prints a number that is not the result.
// row: 1
// caught: what a kernel prints is output
// emulator: wrong
// cuda: wrong
// words: it prints
//// both
#include <cstdio>
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * in[i] + 1.0f;
//// original
    if (i == 0) printf("first %f\n", out[i]);
//// candidate
    if (i == 0) printf("first %f\n", -1.0f);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
