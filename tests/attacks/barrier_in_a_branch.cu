// Waits at a barrier that only some threads reach.
// row: 11
// caught: synccheck; the emulator knows who waits for whom
// emulator: unsafe
// cuda: unsafe wrong timeout
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
    if (i < n) { tile[t] = in[i]; __syncthreads(); } else { tile[t] = 0.0f; for (volatile int v = 0; v < 100; v = v + 1) {} }
//// both
    int from = 127 - t;
    if (blockIdx.x * 128 + t < n) out[blockIdx.x * 128 + t] = tile[from];
}

void run(const float* in, float* out, int n) {
    turn<<<(n + 127) / 128, 128>>>(in, out, n);
}
