// Stops where the original goes on.
// row: 1
// caught: a trap is a fault
// emulator: unsafe
// cuda: unsafe
// words: trap | launch failure
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// candidate
    if (isnan(in[i])) __trap();
//// both
    out[i] = 2.0f * in[i] + 1.0f;
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
