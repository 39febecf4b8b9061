// Prints the same from the same threads, the number rounded otherwise.
// row: 1
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
#include <cstdio>
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    out[i] = in[i] / 3.0f + 100.0f;
//// candidate
    out[i] = in[i] * (1.0f / 3.0f) + 100.0f;
//// both
    if (i % 1000 == 0) printf("%d: %g of %.3e\n", i, out[i], in[i]);
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
