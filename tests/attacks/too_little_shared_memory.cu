// Uses one element more of dynamic shared memory than its launch gives.
// row: 11
// caught: the emulator and memcheck know how much a launch gives
// emulator: unsafe
// cuda: unsafe wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void mirror(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    int t = threadIdx.x, first = blockIdx.x * blockDim.x;
    int last = min((int)blockDim.x, n - first) - 1;
//// original
    if (first + t < n) tile[t] = in[first + t];
    __syncthreads();
    if (first + t < n) out[first + t] = tile[last - t];
//// candidate
    if (first + t < n) tile[t + 1] = in[first + t];
    __syncthreads();
    if (first + t < n) out[first + t] = tile[last - t + 1];
//// both
}

void run(const float* in, float* out) {
    const int n = 3000;
    mirror<<<(n + 255) / 256, 256, 256 * sizeof(float)>>>(in, out, n);
}
