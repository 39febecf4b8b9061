// A histogram that is counted in shared memory first.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array bins[64] in-out
// warpwright: time n=40000
__global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) atomicAdd(bins + in[i] % 64, 1u);
//// candidate
    __shared__ unsigned own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(own + in[i] % 64, 1u);
    __syncthreads();
    if (threadIdx.x < 64 && own[threadIdx.x]) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
//// both
}

void run(const unsigned char* in, unsigned* bins, int n) {
    histogram<<<(n + 255) / 256, 256>>>(in, bins, n);
}
