// An input that neither side uses.
// row: 4
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array unused[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, const float* unused, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    if (i < n) out[i] = in[i] + in[i];
//// both
}

void run(const float* in, const float* unused, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, unused, out, n);
}
