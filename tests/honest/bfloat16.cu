// bfloat16 through float.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
#include <cuda_bf16.h>
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const __nv_bfloat16* in, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = __float2bfloat16(__bfloat162float(in[i]) * 3.0f);
//// candidate
    if (i < n) { float x = __bfloat162float(in[i]); out[i] = __float2bfloat16(x + x + x); }
//// both
}

void run(const __nv_bfloat16* in, __nv_bfloat16* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
