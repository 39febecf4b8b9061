// Sums into a variable that it never set.
// row: 11
// caught: the emulator and the compiler see it, or results differ
// emulator: wrong unsafe
// cuda: wrong unsafe
//// both
// warpwright: array in[n * 64] in
// warpwright: array out[n] out
// warpwright: time n=4000
__global__ void row_sum(const float* in, float* out, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
//// original
    float sum = 0.0f;
    for (int j = 0; j < 64; j++) sum += in[row * 64 + j];
//// candidate
    float part[8], sum = 0.0f;
    for (int j = 0; j < 8; j++) if (j) part[j] = 0.0f;
    for (int j = 0; j < 64; j++) part[j & 7] += in[row * 64 + j];
    for (int j = 0; j < 8; j++) sum += part[j];
//// both
    out[row] = sum;
}

void run(const float* in, float* out, int n) {
    row_sum<<<(n + 63) / 64, 64>>>(in, out, n);
}
