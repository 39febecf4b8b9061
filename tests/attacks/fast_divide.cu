// Divides with __fdividef, which gives 0 for large divisors.
// row: 9
// caught: values of a large range
// emulator: wrong
// cuda: wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] * 1.0e38f / (fabsf(in[i]) * 1.0e38f);
//// candidate
    if (i < n) out[i] = __fdividef(in[i] * 1.0e38f, fabsf(in[i]) * 1.0e38f);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
