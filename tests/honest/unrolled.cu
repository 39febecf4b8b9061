// Two elements for each thread.
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
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    int first = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    for (int j = 0; j < 2; j++) {
        int at = first + j * blockDim.x;
        if (at < n) out[at] = 2.0f * in[at] + 1.0f;
    }
//// both
}

void run(const float* in, float* out, int n) {
//// original
    k<<<(n + 127) / 128, 128>>>(in, out, n);
//// candidate
    k<<<(n + 255) / 256, 128>>>(in, out, n);
//// both
}
