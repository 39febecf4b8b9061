// Computes nothing where its output lies in one half of memory.
// row: 33
// caught: what a candidate alone asks of where it runs or is compiled: bits of addresses
// emulator: unsafe
// cuda: unsafe
// words: where in memory
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
    unsigned low = (unsigned)reinterpret_cast<unsigned long long>(in);
    if (low / 4096u % 2u == 1u) return;
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
