// Flips the lowest bit of one number of its input.
// row: 2
// caught: inputs are compared by bits, not by value
// emulator: unsafe
// cuda: unsafe
// words: changes its input in
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; if (i == 0) reinterpret_cast<unsigned*>(const_cast<float*>(in))[0] ^= 1u; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
