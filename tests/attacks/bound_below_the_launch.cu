// Promises the compiler smaller blocks than those that it is launched with, so that nothing runs.
// row: 11
// caught: the launch's status is read
// emulator: wrong unsafe
// cuda: wrong unsafe
// words: launch | fails
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
//// original
__global__ void scale(const float* in, float* out, int n) {
//// candidate
__global__ void __launch_bounds__(64) scale(const float* in, float* out, int n) {
//// both
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
