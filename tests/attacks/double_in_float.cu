// Computes in float what the original computes in double.
// row: 8
// caught: the tolerance is that of double precision
// emulator: wrong
// cuda: wrong
// words: should be
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0 * in[i] + 1.0 / 3.0;
//// candidate
    if (i < n) out[i] = 2.0f * (float)in[i] + 1.0f / 3.0f;
//// both
}

void run(const double* in, double* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
