// Reads at a shuffle from lanes that do not come to it.
// row: 11
// caught: the emulator notes what a shuffle reads from lanes that have ended
// emulator: unsafe
// cuda: unsafe wrong correct faster slower inconclusive
// words: reads at a shuffle | 
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
    if (t >= 8) return;
    float x = 0.0f;
    for (int k = 0; k < 64; k += 8) x += part[t + k];
    for (int h = 4; h > 0; h /= 2) x += __shfl_down_sync(0xffffffffu, x, h);
    if (t == 0) out[blockIdx.x] = x;
//// both
}

void run(const float* in, float* out, int n) {
    sums<<<(n + 63) / 64, 64>>>(in, out, n);
}
