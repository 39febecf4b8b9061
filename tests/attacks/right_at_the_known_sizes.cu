// Knows the sizes that are always tried, and does nothing at others.
// row: 5
// caught: one size is drawn with a secret seed each time
// emulator: wrong
// cuda: wrong
// words: was not written
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n && (n == 1 || n == 31 || n == 33 || n == 127 || n == 129 || n == 1000 || n == 1009 || n > 9000)) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
