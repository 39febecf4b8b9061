// Is off by one part in ten thousand.
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
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = (2.0f * in[i] + 1.0f) * 1.0001f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
