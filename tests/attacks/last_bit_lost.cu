// Is off by one in the last place on whole numbers, where nothing needs rounding.
// row: 8
// caught: small whole numbers must come out bit for bit
// emulator: wrong
// cuda: wrong
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
    float sum = 0.0f;
    for (int j = 0; j < 64; j++) sum += in[row * 64 + j];
    sum = __int_as_float(__float_as_int(sum) ^ (sum != 0.0f ? 1 : 0));
//// both
    out[row] = sum;
}

void run(const float* in, float* out, int n) {
    row_sum<<<(n + 63) / 64, 64>>>(in, out, n);
}
