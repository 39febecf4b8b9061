// Sums in double: more exact than the original.
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
    if (t == 0) {
        double sum = 0.0;
        for (int j = 0; j < 256; j++) sum += partial[j];
        sums[blockIdx.x] = (float)sum;
    }
//// both
}

void run(const float* in, float* sums, int n) {
    reduce<<<(n + 255) / 256, 256>>>(in, sums, n);
}
