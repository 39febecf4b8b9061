// Dynamic shared memory for a static array.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void turn(const float* in, float* out, int n) {
//// original
    __shared__ float tile[128];
//// candidate
    extern __shared__ float tile[];
//// both
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    tile[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if (i < n) out[i] = tile[127 - t];
}

void run(const float* in, float* out, int n) {
//// original
    turn<<<(n + 127) / 128, 128>>>(in, out, n);
//// candidate
    turn<<<(n + 127) / 128, 128, 128 * sizeof(float)>>>(in, out, n);
//// both
}
