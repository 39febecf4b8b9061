// Conditional compilation and a macro with braces.
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
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 300
#define APPLY(x) { out[i] = 2.0f * (x); }
    if (i < n) APPLY(in[i])
#else
    exit(1);
#endif
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
