// A stencil whose neighbours come from shared memory.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void blur(const float* in, float* out, int n) {
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
//// original
    if (i < n) {
        float left = i > 0 ? in[i - 1] : 0.0f, right = i + 1 < n ? in[i + 1] : 0.0f;
        out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * right;
    }
//// candidate
    __shared__ float tile[130];
    tile[t + 1] = i < n ? in[i] : 0.0f;
    if (t == 0) tile[0] = i > 0 && i - 1 < n ? in[i - 1] : 0.0f;
    if (t == 127) tile[129] = i + 1 < n ? in[i + 1] : 0.0f;
    __syncthreads();
    if (i < n) out[i] = 0.25f * tile[t] + 0.5f * tile[t + 1] + 0.25f * tile[t + 2];
//// both
}

void run(const float* in, float* out, int n) {
    blur<<<(n + 127) / 128, 128>>>(in, out, n);
}
