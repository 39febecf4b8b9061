// Sums of floats by atomics, whose order is never the same: one for each warp.
// row: 11
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array total[1] in-out
// warpwright: time n=40000
__global__ void sum(const float* in, float* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) atomicAdd(total, in[i]);
//// candidate
    float own = i < n ? in[i] : 0.0f;
    for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(0xffffffff, own, step);
    if (threadIdx.x % 32 == 0) atomicAdd(total, own);
//// both
}

void run(const float* in, float* total, int n) {
    sum<<<(n + 127) / 128, 128>>>(in, total, n);
}
