// Text that looks like a cheat to who reads it with regular expressions.
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
    // pass; return reference; system("rm"); try: except: pass
    const char* note = "#include <stdlib.h> exit(0) clock64() asm volatile";
    int memcpy_bypass = note != nullptr;
#define clock_like 2.0f
    if (i < n && memcpy_bypass) out[i] = clock_like * in[i];
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
