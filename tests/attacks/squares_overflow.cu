// Takes the root of a sum of squares, which overflow where the length does not.
// row: 6
// caught: values whose squares overflow
// emulator: wrong
// cuda: wrong
// words: stands at other places
//// both
// warpwright: array x[n] in
// warpwright: array y[n] in
// warpwright: array out[n] out
__global__ void length(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = hypotf(x[i], y[i]);
//// candidate
    if (i < n) out[i] = sqrtf(x[i] * x[i] + y[i] * y[i]);
//// both
}

void run(const float* x, const float* y, float* out, int n) {
    length<<<(n + 127) / 128, 128>>>(x, y, out, n);
}
