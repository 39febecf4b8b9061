// The block is taken for the first size of a sweep.
// row: 5
// caught: each block size of a sweep is run
// emulator: wrong unsafe
// cuda: wrong unsafe
// words: as it is launched at
//// both
__global__ void sums(const float* in, float* out, int n) {
    __shared__ float part[512];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
//// original
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
//// candidate
    for (int half = 16; half > 0; half /= 2) {
//// both
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

int main() {
    int n = 8192;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    for (int block = 32; block <= 512; block *= 2) sums<<<(n + block - 1) / block, block>>>(in, out, n);
    return cudaDeviceSynchronize();
}
