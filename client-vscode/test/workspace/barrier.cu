// Pitfall: half of each block never comes to the barrier.
__global__ void halve(const float* in, float* out) {
    __shared__ float held[256];
    int t = threadIdx.x;
    if (t < 128) {
        held[t] = in[blockIdx.x * 256 + t];
        __syncthreads();
        out[blockIdx.x * 256 + t] = held[127 - t];
    }
}

void run(const float* in, float* out, int blocks) {
    halve<<<blocks, 256>>>(in, out);
}
