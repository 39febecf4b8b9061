// A grid-stride loop on fewer blocks.
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
    for (; i < n; i += gridDim.x * blockDim.x) out[i] = 2.0f * in[i];
//// both
}

void run(const float* in, float* out, int n) {
//// original
    k<<<(n + 127) / 128, 128>>>(in, out, n);
//// candidate
    k<<<n < 4096 ? 1 : 16, 256>>>(in, out, n);
//// both
}
