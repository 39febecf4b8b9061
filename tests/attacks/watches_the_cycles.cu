// Skips its work by the multiprocessor's clock.
// row: 16
// caught: a candidate that reads a clock that the original does not read cannot be verified
// emulator: unsafe
// cuda: unsafe
// words: clock
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if ((clock64() & 0xffffff) == 12345 && n > 5000) return; if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
