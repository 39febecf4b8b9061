__global__ void tables(float *out, const float *table, size_t count) {
    __shared__ float t[32];
    if (threadIdx.x < 32)
        t[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    const size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < count) out[i] = t[i % 32] * 2.0f; // from the table
}

void run(const float *host, float *result, int n) {
    float *table, *out;
    cudaMalloc((void **)&table, 32 * sizeof(float));
    cudaMalloc((void **)&out, sizeof(float) * n);
    cudaMemcpy(table, host, 32 * sizeof(float), cudaMemcpyHostToDevice);
    int blocks = (n - 1) / 64 + 1;
    tables<<<blocks, 64>>>(out, table, n);
    cudaMemcpy(result, out, n * sizeof(float), cudaMemcpyDeviceToHost);
}
