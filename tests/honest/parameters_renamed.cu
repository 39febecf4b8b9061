// The kernel's parameters have other names, and the launch is as it was.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
//// original
__global__ void scale(const float* in, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
}
//// candidate
__global__ void scale(const float* __restrict__ from, float* __restrict__ to, int count, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = by * from[i];
}
//// both

void run(const float* in, float* out, int n) {
//// original
    scale<<<(n + 127) / 128, 128>>>(in, out, n, 2.5f);
//// candidate
    scale<<<(n + 255) / 256, 256>>>(in, out, n, 2.5f);
//// both
}
