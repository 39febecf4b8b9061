// A report of numbers that are not finite is gone; a function that the kernel calls printed it.
// row: 1
// caught: what a kernel prints is output
// emulator: wrong
// cuda: wrong
// words: it prints nothing
//// both
#include <cstdio>
__device__ void report(int i, float x) {
//// original
    if (!isfinite(x)) printf("element %d is %s\n", i, isnan(x) ? "NaN" : "infinite");
//// both
}
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    report(i, in[i]);
    out[i] = 2.0f * in[i] + 1.0f;
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
