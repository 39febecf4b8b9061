// A polynomial with fused multiplications and additions.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) { float x = in[i]; out[i] = 1.0f + 2.0f * x + 3.0f * x * x; }
//// candidate
    if (i < n) { float x = in[i]; out[i] = fmaf(3.0f * x, x, fmaf(2.0f, x, 1.0f)); }
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
