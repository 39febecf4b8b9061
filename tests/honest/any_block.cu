// A sum that takes any block of whole warps, for a block that the caller chooses.
// row: 5
// emulator: correct
// cuda: faster correct inconclusive slower
//// both
__global__ void sums(const int* in, int* out, int n) {
    __shared__ int total;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t == 0) total = 0;
    __syncthreads();
    int sum = i < n ? in[i] : 0;
//// original
    atomicAdd(&total, sum);
//// candidate
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    if (t % 32 == 0) atomicAdd(&total, sum);
//// both
    __syncthreads();
    if (t == 0) out[blockIdx.x] = total;
}

void run(const int* in, int* out, int n, int threads) {
    sums<<<(n + threads - 1) / threads, threads>>>(in, out, n);
}
