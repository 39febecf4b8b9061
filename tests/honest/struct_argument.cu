// Arguments in a struct, copied to registers first.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
struct Line { const float* in; float* out; int n; float slope; float start; };
__global__ void line(Line p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < p.n) p.out[i] = p.slope * p.in[i] + p.start;
//// candidate
    const float slope = p.slope, start = p.start;
    if (i < p.n) p.out[i] = fmaf(slope, p.in[i], start);
//// both
}

void run(const float* in, float* out, int n) {
    Line p{in, out, n, 1.25f, 0.5f};
    line<<<(n + 127) / 128, 128>>>(p);
}
