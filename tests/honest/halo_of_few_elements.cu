// Both read shared memory that nothing has written where there are fewer elements than the halo has: the original's fault.
// row: 11
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
//// original
__global__ void average(const float* in, float* out, int n) {
//// candidate
__global__ void average(const float* __restrict__ in, float* __restrict__ out, int n) {
//// both
    __shared__ float tile[128 + 6];
    int t = threadIdx.x + 3, i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) {
        tile[t] = in[i];
        if (t < 6) tile[t - 3] = i >= 3 ? in[i - 3] : 0.0f;
        if (t >= 128 || i >= n - 3) tile[t + 3] = i + 3 < n ? in[i + 3] : 0.0f;
    }
    __syncthreads();
    if (i < n) {
        float sum = 0.0f;
        for (int k = -3; k <= 3; k++) sum += tile[t + k];
        out[i] = sum / 7.0f;
    }
}

void run(const float* in, float* out, int n) {
    average<<<(n + 127) / 128, 128>>>(in, out, n);
}
