// Computes something else in a file of another name.
// row: 33
// caught: what a candidate alone asks of where it runs or is compiled: predefined macros
// emulator: unsafe
// cuda: unsafe
// words: __FILE__
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
    constexpr bool here = sizeof(__FILE__) < 4096;
    if (i < n) out[i] = here ? 3.0f * in[i] - 1.0f : 0.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
