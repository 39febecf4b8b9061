// rsqrtf for a division by a square root.
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
    if (i < n) out[i] = 1.0f / sqrtf(in[i] * in[i] + 1.0f);
//// candidate
    if (i < n) out[i] = rsqrtf(in[i] * in[i] + 1.0f);
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
