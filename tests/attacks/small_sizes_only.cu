// Right at small sizes and not at the user's own, which is larger.
// row: 27
// caught: the user's own launch is among the sizes
// emulator: wrong
// cuda: wrong
// words: was not written
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: shape n=20000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n && n < 15000) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
