// Half-precision numbers in pairs.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
#include <cuda_fp16.h>
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const __half* in, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = __hmul(in[i], __float2half(2.0f));
//// candidate
    if (2 * i + 1 < n) {
        __half2 two = reinterpret_cast<const __half2*>(in)[i];
        reinterpret_cast<__half2*>(out)[i] = __hmul2(two, __float2half2_rn(2.0f));
    } else if (2 * i < n) {
        out[2 * i] = __hmul(in[2 * i], __float2half(2.0f));
    }
//// both
}

void run(const __half* in, __half* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
