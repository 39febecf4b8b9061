// Skips a warp that stands in the multiprocessor's second half.
// row: 33
// caught: what a candidate alone asks of where it runs or is compiled: special registers
// emulator: unsafe
// cuda: unsafe
// words: warps it runs
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
    unsigned warp;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    if (warp >= 32u) return;
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
