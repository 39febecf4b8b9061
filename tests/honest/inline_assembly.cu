// One fma as inline PTX.
// row: 37
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = fmaf(in[i], 2.0f, 1.0f);
//// candidate
    if (i < n) {
        float r;
        asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(in[i]), "f"(2.0f), "f"(1.0f));
        out[i] = r;
    }
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
