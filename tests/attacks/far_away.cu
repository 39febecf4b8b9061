// Writes to an address of no array.
// row: 12
// caught: an illegal access ends the process, never the verification
// emulator: unsafe
// cuda: unsafe
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; if (i == 0) *reinterpret_cast<volatile float*>(8) = 1.0f; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
