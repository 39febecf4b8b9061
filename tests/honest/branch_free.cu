// A select for a branch.
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
    if (i < n) { if (in[i] > 0.0f) out[i] = in[i]; else out[i] = 0.1f * in[i]; }
//// candidate
    if (i < n) { float x = in[i]; out[i] = x > 0.0f ? x : 0.1f * x; }
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
