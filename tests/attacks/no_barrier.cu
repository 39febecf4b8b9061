// Leaves a barrier out: right by luck.
// row: 11
// caught: a race is a fault in the emulator; racecheck and differing runs find it on a GPU
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
    tile[t] = i < n ? in[i] : 0.0f;
//// both
    int from = 127 - t;
    if (blockIdx.x * 128 + t < n) out[blockIdx.x * 128 + t] = tile[from];
}

void run(const float* in, float* out, int n) {
    turn<<<(n + 127) / 128, 128>>>(in, out, n);
}
