// The last block to end sums for all: a counter that it sets back for the next launch.
// row: 16
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
//// candidate
__device__ unsigned ended = 0;
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&ended, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) atomicExch(&ended, 0u);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
