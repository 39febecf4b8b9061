// One thread's long sum of squares as a tree: other roundings, as large as the sum is long.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array x[n] in
// warpwright: array total[1] out
// warpwright: launch grid(1) block(256)
// warpwright: shape n=20000
__global__ void squares(const float* x, float* total, int n) {
    __shared__ float part[256];
    int t = threadIdx.x;
//// original
    if (t == 0) {
        float sum = 0.0f;
        for (int i = 0; i < n; i++) sum += x[i] * x[i];
        *total = sum;
    }
    part[t] = 0.0f;
//// candidate
    float own = 0.0f;
    for (int i = t; i < n; i += 256) own += x[i] * x[i];
    part[t] = own;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) *total = part[0];
//// both
}
