// Computes something else where the host code is optimised.
// row: 33
// caught: what a candidate alone asks of where it runs or is compiled: macros in conditions that the text does not define
// emulator: unsafe
// cuda: unsafe
// words: __OPTIMIZE__
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
#ifdef __OPTIMIZE__
    if (i < n) out[i] = 0.0f;
#else
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
#endif
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
