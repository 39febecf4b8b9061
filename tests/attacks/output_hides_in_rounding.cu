// The original's output is lost in its own rounding, so zeros pass for it: the problem is at fault.
// row: 3
// caught: zeros, the mean and means along each axis are tried as candidates
// emulator: not-run
// cuda: not-run
// words: lost in its own rounding
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 10000.0f + 0.001f * sinf(in[i]);
//// candidate
    if (i < n) out[i] = 10000.0f + 0.0f * sinf(in[i]);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
