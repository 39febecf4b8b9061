// Takes another parameter than the original, which nobody passes.
// row: 13
// caught: both sides are launched with the original's arguments
// emulator: not-run wrong
// cuda: not-run wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
//// original
__global__ void scale(const float* in, float* out, int n) {
//// candidate
__global__ void scale(const float* in, float* out, long n, float factor = 2.0f) {
//// both
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i];
}
