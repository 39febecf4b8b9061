// Uses dynamic shared memory that its launch does not give.
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
    if (first + t < n) tile[t] = in[first + t];
    __syncthreads();
    if (first + t < n) out[first + t] = tile[last - t];
}

void run(const float* in, float* out, int n) {
//// original
    mirror<<<(n + 255) / 256, 256, 256 * sizeof(float)>>>(in, out, n);
//// candidate
    mirror<<<(n + 255) / 256, 256>>>(in, out, n);
//// both
}
