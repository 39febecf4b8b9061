// Clamps infinity to the largest number.
// row: 6
// caught: infinities among the values
// emulator: wrong
// cuda: wrong
// words: stands at other places
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    if (i < n) out[i] = fminf(fmaxf(2.0f * in[i], -3.0e38f), 3.0e38f);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
