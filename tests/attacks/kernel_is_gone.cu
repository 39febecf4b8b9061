// Defines a kernel of another name and leaves the launched one out.
// row: 14
// caught: a candidate that lacks a kernel of the original is wrong
// emulator: wrong does-not-compile
// cuda: wrong does-not-compile
// words: does not define
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
//// original
__global__ void scale(const float* in, float* out, int n) {
//// candidate
__global__ void scale_fast(const float* in, float* out, int n) {
//// both
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i];
}
