// A counter that only the kernel uses is not set back: the second launch has no last block.
// row: 1
// caught: both sides are launched twice
// emulator: wrong
// cuda: wrong
//// both
static __device__ unsigned ended;
// warpwright: array done[1] out
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, float* done, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i];
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&ended, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) {
        done[0] = 7.0f;
//// original
        atomicExch(&ended, 0u);
//// both
    }
}

void run(const float* in, float* out, float* done, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, done, n);
}
