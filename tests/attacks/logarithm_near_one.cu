// Adds one before it takes the logarithm, and loses what is far below one.
// row: 7
// caught: values of small magnitude
// emulator: wrong
// cuda: wrong
// words: small values
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void softplus(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = log1pf(fabsf(in[i])) * 3.0f;
//// candidate
    if (i < n) out[i] = logf(1.0f + fabsf(in[i])) * 3.0f;
//// both
}

void run(const float* in, float* out, int n) {
    softplus<<<(n + 127) / 128, 128>>>(in, out, n);
}
