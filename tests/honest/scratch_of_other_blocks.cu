// Partial results of each block in a variable that only this kernel uses; the blocks are another size.
// row: 1
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
static __device__ float partial[65536];
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i < n ? in[i] : 0.0f;
    if (threadIdx.x == 0) partial[blockIdx.x] = x;
    if (i < n) out[i] = 2.0f * (threadIdx.x == 0 ? partial[blockIdx.x] : x);
}

void run(const float* in, float* out, int n) {
//// original
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
//// candidate
    scale<<<(n + 255) / 256, 256>>>(in, out, n);
//// both
}
