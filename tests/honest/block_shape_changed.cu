// Blocks of 256 threads instead of 128.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    if (i < n) out[i] = in[i] + in[i];
//// both
}

void run(const float* in, float* out, int n) {
//// original
    k<<<(n + 127) / 128, 128>>>(in, out, n);
//// candidate
    k<<<(n + 255) / 256, 256>>>(in, out, n);
//// both
}
