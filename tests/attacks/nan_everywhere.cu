// Writes NaN everywhere, which compares unequal to nothing.
// row: 10
// caught: where NaN stands is compared by itself
// emulator: wrong
// cuda: wrong
// words: NaN stands
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = __int_as_float(0x7fc00000);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
