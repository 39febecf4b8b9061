// Stops a series after too few terms.
// row: 7
// caught: the tolerance is what rounding moves the original's own result by
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
    if (i < n) out[i] = expf(0.1f * in[i]);
//// candidate
    if (i < n) { float x = 0.1f * in[i]; out[i] = 1.0f + x * (1.0f + x * (0.5f + x * (1.0f / 6.0f + x / 24.0f))); }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
