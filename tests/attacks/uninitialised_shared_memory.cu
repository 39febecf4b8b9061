// Reads shared memory that nothing has written.
// row: 11
// caught: the emulator knows what was written; runs are compared on a GPU
// emulator: unsafe
// cuda: unsafe wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void turn(const float* in, float* out, int n) {
    __shared__ float tile[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
//// original
    tile[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
//// candidate
    if (i < n) tile[t] = in[i];
    __syncthreads();
//// both
    int from = 127 - t;
    if (blockIdx.x * 128 + t < n) out[blockIdx.x * 128 + t] = tile[from];
}

void run(const float* in, float* out, int n) {
    turn<<<(n + 127) / 128, 128>>>(in, out, n);
}
