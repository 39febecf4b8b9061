// Pastes the name of a macro together, of which it asks.
// row: 33
// caught: what a candidate alone asks of where it runs or is compiled: names that are pasted together
// emulator: unsafe
// cuda: unsafe
// words: pastes together
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
#define NAME(a, b) a##b
    if (i < n) out[i] = NAME(__DA, TE__)[0] == 'Q' ? 0.0f : 3.0f * in[i] - 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
