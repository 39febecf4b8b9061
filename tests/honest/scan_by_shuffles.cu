// An inclusive scan of a block by shuffles instead of shared memory.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scan(const float* in, float* out, int n) {
    __shared__ float sums[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    float x = i < n ? in[i] : 0.0f;
//// original
    sums[t] = x;
    __syncthreads();
    for (int step = 1; step < 128; step *= 2) {
        float add = t >= step ? sums[t - step] : 0.0f;
        __syncthreads();
        sums[t] += add;
        __syncthreads();
    }
    x = sums[t];
//// candidate
    for (int step = 1; step < 32; step *= 2) {
        float add = __shfl_up_sync(0xffffffff, x, step);
        if (t % 32 >= step) x += add;
    }
    if (t % 32 == 31) sums[t / 32] = x;
    __syncthreads();
    for (int before = 0; before < t / 32; before++) x += sums[before];
//// both
    if (i < n) out[i] = x;
}

void run(const float* in, float* out, int n) {
    scan<<<(n + 127) / 128, 128>>>(in, out, n);
}
