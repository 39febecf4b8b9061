// Rounds halves away from zero where the original rounds them to even, in floats.
// row: 6
// caught: numbers half-way between two that rounding may give, which no measurement of the tolerance moves
// emulator: wrong
// cuda: wrong
// words: values differ
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void snap(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = nearbyintf(in[i] * 8.0f) * 0.125f;
//// candidate
    if (i < n) out[i] = roundf(in[i] * 8.0f) * 0.125f;
//// both
}

void run(const float* in, float* out, int n) {
    snap<<<(n + 127) / 128, 128>>>(in, out, n);
}
