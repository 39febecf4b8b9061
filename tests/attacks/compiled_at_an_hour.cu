// Adds another number by the time of day at which it is compiled.
// row: 33
// caught: what a candidate alone asks of where it runs or is compiled: predefined macros
// emulator: unsafe
// cuda: unsafe
// words: __TIME__
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
    constexpr float one = (__TIME__)[7] == '9' ? 2.0f : 1.0f;
    if (i < n) out[i] = 3.0f * in[i] - one;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
