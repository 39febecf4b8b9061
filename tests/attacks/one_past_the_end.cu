// Writes one element past the end.
// row: 12
// caught: guard zones around every array; the emulator knows each array's end
// emulator: unsafe
// cuda: unsafe
// words: | writes outside out
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; if (i == 0) out[n] = 0.0f; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
