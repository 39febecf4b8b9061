// Computes only where the output is NaN, as a harness leaves it, and keeps other numbers.
// row: 1
// caught: of the two secret fillings one is NaN and one is ordinary numbers
// emulator: unsafe
// cuda: wrong
// words: which nothing has written | 
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n && isnan(out[i])) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
