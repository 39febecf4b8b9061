// The index that an assertion looks at is computed once.
// row: 1
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
#include <cassert>
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    assert(i >= 0);
//// original
    out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    float x = in[i];
    out[i] = x + x + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
