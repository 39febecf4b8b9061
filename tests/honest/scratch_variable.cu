// A device variable as scratch memory, written before it is read in each launch.
// row: 16
// emulator: correct
// cuda: correct faster slower inconclusive
//// candidate
__device__ float scratch[65536];
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) {
        float doubled = 2.0f * in[i];
        if (i < 65536) { scratch[i] = doubled; doubled = scratch[i]; }
        out[i] = doubled + 1.0f;
    }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
