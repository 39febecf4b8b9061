// Forgets an input of small effect.
// row: 4
// caught: compared on values at which it matters
// emulator: wrong
// cuda: wrong
// words: should be
//// both
// warpwright: array in[n] in
// warpwright: array bias[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, const float* bias, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] + 0.001f * bias[i];
//// candidate
    if (i < n) out[i] = in[i];
//// both
}

void run(const float* in, const float* bias, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, bias, out, n);
}
