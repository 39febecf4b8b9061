// Waits for a block that may never run.
// row: 31
// caught: a deadline of its own; the emulator knows who waits for whom
// emulator: timeout unsafe
// cuda: timeout unsafe
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i == 0) while (*reinterpret_cast<volatile float*>(out) != 12345.0f) {} if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
