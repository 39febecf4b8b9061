// Warp shuffles instead of shared memory for the last steps.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array sums[(n + 255) / 256] out
// warpwright: time n=40000
__global__ void reduce(const float* in, float* sums, int n) {
    __shared__ float partial[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    partial[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
//// original
    for (int stride = 1; stride < 256; stride *= 2) {
        if (t % (2 * stride) == 0) partial[t] += partial[t + stride];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = partial[0];
//// candidate
    float sum = partial[t];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    __syncthreads();
    if (t % 32 == 0) partial[t / 32] = sum;
    __syncthreads();
    if (t < 32) {
        sum = t < 8 ? partial[t] : 0.0f;
        for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
        if (t == 0) sums[blockIdx.x] = sum;
    }
//// both
}

void run(const float* in, float* sums, int n) {
    reduce<<<(n + 255) / 256, 256>>>(in, sums, n);
}
