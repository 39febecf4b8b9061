// Flushes denormal numbers to zero.
// row: 6
// caught: denormals among the values
// emulator: wrong
// cuda: wrong
// words: special values
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] != 0.0f ? 1.0f : 0.0f;
//// candidate
    if (i < n) out[i] = fabsf(in[i]) >= 1.2e-38f ? 1.0f : isnan(in[i]) ? 1.0f : 0.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
