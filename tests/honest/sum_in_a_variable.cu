// A sum in a variable that host code copies, added up by warp first: another rounding.
// row: 1
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
__device__ float total;
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
    float x = i < n ? in[i] : 0.0f;
//// original
    atomicAdd(&total, x);
//// candidate
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffffu, x, step);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, x);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
    float sum;
    cudaMemcpyFromSymbol(&sum, total, sizeof sum);
}
