// More than 48 KB of shared memory, static and dynamic together, for which the host code asks.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void turn(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    __shared__ float last[4096];
    int t = threadIdx.x, first = blockIdx.x * 128;
    last[t] = first + t < n ? in[first + t] : 0.0f;
    __syncthreads();
    tile[t] = last[t];
    __syncthreads();
    if (first + t < n) out[first + t] = tile[127 - t];
}

void run(const float* in, float* out, int n) {
//// original
    turn<<<(n + 127) / 128, 128, 128 * sizeof(float)>>>(in, out, n);
//// candidate
    const int bytes = 40000;
    cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    turn<<<(n + 127) / 128, 128, bytes>>>(in, out, n);
//// both
}
