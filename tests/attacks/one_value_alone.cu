// Is wrong for one value that no distribution draws.
// row: 3
// caught: values around the numbers that the text compares with
// emulator: wrong
// cuda: wrong
// words: threshold values
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    if (i < n) out[i] = in[i] == 1000.0f ? 0.0f : 2.0f * in[i];
//// both
}

void run(const float* in, float* out, int n) { scale<<<(n + 127) / 128, 128>>>(in, out, n); }
