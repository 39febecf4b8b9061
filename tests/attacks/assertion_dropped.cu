// An assertion about the input, which stops the program, is gone.
// row: 1
// caught: where the original stops itself the candidate must
// emulator: unsafe
// cuda: unsafe correct faster slower inconclusive
// words: original's assertion fails
//// both
#include <cassert>
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    assert(!isnan(in[i]));
//// both
    out[i] = 2.0f * in[i] + 1.0f;
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
