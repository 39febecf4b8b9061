// Takes all inputs for positive.
// row: 6
// caught: negative values
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
    if (i < n) out[i] = fabsf(in[i]) + in[i];
//// candidate
    if (i < n) out[i] = 2.0f * in[i];
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
