// A polynomial of doubles in another form: near its roots the last bits differ.
// row: 7
// emulator: correct
// cuda: faster correct inconclusive slower
//// both
__global__ void cubic(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i];
//// original
    out[i] = x * x * x - 2.0 * x * x + x;
//// candidate
    out[i] = x * fma(x, x - 2.0, 1.0);
//// both
}

void run(const double* in, double* out, int n) {
    cubic<<<(n + 127) / 128, 128>>>(in, out, n);
}
