// Drops every number below 0.001: with a million in the same array an absolute tolerance hides that.
// row: 7
// caught: values of all magnitudes by themselves
// emulator: wrong
// cuda: wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    if (i < n) out[i] = fabsf(in[i]) < 1.0e-3f ? 0.0f : 2.0f * in[i];
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
