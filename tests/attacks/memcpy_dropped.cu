// Host code does not copy one of the inputs any more.
// row: 1
// caught: an array that host code no longer fills is read as what nothing has written
// emulator: unsafe
// cuda: unsafe
//// both
__global__ void weigh(const float* in, const float* weights, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] * weights[i];
//// candidate
    if (i < n) out[i] = weights[i] * in[i];
//// both
}

void run(const float* from, const float* by, float* to, int n) {
    float *in, *weights, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&weights, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice);
//// original
    cudaMemcpy(weights, by, n * sizeof(float), cudaMemcpyHostToDevice);
//// both
    weigh<<<(n + 127) / 128, 128>>>(in, weights, out, n);
    cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(in), cudaFree(weights), cudaFree(out);
}
