// The last steps of a sum by shuffles of half a warp, with the mask of its lanes.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[(n + 63) / 64] out
__global__ void sums(const float* in, float* out, int n) {
    __shared__ float part[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    part[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
//// original
    for (int h = 32; h > 0; h /= 2) {
        if (t < h) part[t] += part[t + h];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
//// candidate
    if (t < 16) {
        float x = (part[t] + part[t + 32]) + (part[t + 16] + part[t + 48]);
        for (int h = 8; h > 0; h /= 2) x += __shfl_down_sync(0xffffu, x, h, 16);
        if (t == 0) out[blockIdx.x] = x;
    }
//// both
}

void run(const float* in, float* out, int n) {
    sums<<<(n + 63) / 64, 64>>>(in, out, n);
}
