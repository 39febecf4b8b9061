// A step at a threshold by a select instead of a branch, with other rounding beside it.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    float x = in[i], y = x / 3.0f;
    if (x > 100.0f) y = 2.0f * x + 1000.0f;
    out[i] = i == 54321 ? -y : y;
//// candidate
    float x = in[i], y = x > 100.0f ? fmaf(2.0f, x, 1000.0f) : x * (1.0f / 3.0f);
    out[i] = i == 54321 ? -y : y;
//// both
}

void run(const float* in, float* out, int n) { scale<<<(n + 127) / 128, 128>>>(in, out, n); }
