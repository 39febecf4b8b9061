// The block is a parameter of a function that other files call; the candidate takes it for 256 threads.
// row: 5
// caught: a block that is not known is tried at several legal sizes
// emulator: wrong
// cuda: wrong
// words: as it is launched at
//// both
__global__ void scale(const float* in, float* out, int n) {
//// original
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// candidate
    int i = blockIdx.x * 256 + threadIdx.x;
//// both
    if (i < n) out[i] = 3.0f * in[i];
}

void run(const float* in, float* out, int n, int threads) {
    scale<<<(n + threads - 1) / threads, threads>>>(in, out, n);
}
