// Takes a maximum that drops NaN where the original's keeps it.
// row: 10
// caught: NaN among the values
// emulator: wrong
// cuda: wrong
// words: NaN
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] > 0.0f || in[i] != in[i] ? in[i] : 0.0f;
//// candidate
    if (i < n) out[i] = fmaxf(in[i], 0.0f);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
