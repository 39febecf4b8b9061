// Calls the fast approximations that --use_fast_math would, where the original does not.
// row: 9
// caught: both sides have one recorded set of flags; the tolerance is that of the original's own rounding
// emulator: wrong
// cuda: wrong
// words: should be
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = sinf(in[i]);
//// candidate
    if (i < n) out[i] = __sinf(in[i]);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
