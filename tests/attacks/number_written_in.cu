// Writes the number that it is passed into its text: right for this call alone.
// row: 4
// caught: each floating-point number is changed alone
// emulator: wrong
// cuda: wrong
// words: do not change with it | only factor changed
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = factor * in[i];
//// candidate
    if (i < n) out[i] = 1.5f * in[i];
//// both
}

void run(const float* in, float* out, int n, float factor) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n, factor);
}
