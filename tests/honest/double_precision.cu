// A product kept in a variable, in double precision.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] * in[i] + in[i];
//// candidate
    if (i < n) { double x = in[i]; out[i] = fma(x, x, x); }
//// both
}

void run(const double* in, double* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
