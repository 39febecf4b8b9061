// A polynomial by Horner's rule: where the original has infinity less infinity, it has infinity.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void series(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
//// original
    out[i] = 2.0f - 0.75f * x + 0.5f * x * x - 0.125f * x * x * x;
//// candidate
    out[i] = fmaf(x, fmaf(x, fmaf(x, -0.125f, 0.5f), -0.75f), 2.0f);
//// both
}

void run(const float* in, float* out, int n) {
    series<<<(n + 127) / 128, 128>>>(in, out, n);
}
