// Loops for ever.
// row: 31
// caught: a deadline of its own; the emulator counts steps
// emulator: timeout
// cuda: timeout
// words: does not finish
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    for (volatile int v = 0; i == 5; v = v + 1) {} if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
