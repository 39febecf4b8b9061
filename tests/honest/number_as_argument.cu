// A number that is passed, used once more cheaply.
// row: 4
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] / factor;
//// candidate
    float inverse = 1.0f / factor;
    if (i < n) out[i] = in[i] * inverse;
//// both
}

void run(const float* in, float* out, int n, float factor) {
    k<<<(n + 127) / 128, 128>>>(in, out, n, factor);
}
