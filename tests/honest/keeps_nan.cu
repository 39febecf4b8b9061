// A maximum that keeps NaN, written with a comparison.
// row: 10
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void relu(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] != in[i] || in[i] > 0.0f ? in[i] : 0.0f;
//// candidate
    if (i < n) out[i] = in[i] <= 0.0f ? 0.0f : in[i];
//// both
}

void run(const float* in, float* out, int n) {
    relu<<<(n + 127) / 128, 128>>>(in, out, n);
}
