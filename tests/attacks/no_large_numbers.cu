// Saturates at 1,000.
// row: 6
// caught: magnitudes up to a million
// emulator: wrong
// cuda: wrong
// words: large values
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = 2.0f * fminf(fmaxf(in[i], -1000.0f), 1000.0f) + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
