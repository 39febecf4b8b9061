// Takes more dynamic shared memory than it asks for, so that nothing runs.
// row: 11
// caught: what the host code asks for is read, and compared with what the launch takes
// emulator: wrong
// cuda: wrong
// words: the host code asks for only 50,000
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void turn(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    int t = threadIdx.x, first = blockIdx.x * 128;
    tile[t] = first + t < n ? in[first + t] : 0.0f;
    __syncthreads();
    if (first + t < n) out[first + t] = tile[127 - t];
}

void run(const float* in, float* out, int n) {
//// original
    turn<<<(n + 127) / 128, 128, 128 * sizeof(float)>>>(in, out, n);
//// candidate
    cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
    turn<<<(n + 127) / 128, 128, 60000>>>(in, out, n);
//// both
}
