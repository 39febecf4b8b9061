// Copies four elements at a time where both arrays are aligned for it, which it tests.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
#include <cstdint>
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void copy(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i];
//// candidate
    bool aligned = ((reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out)) & 15) == 0;
    if (aligned && in != nullptr) {
        if (4 * i + 3 < n) reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(in)[i];
        else for (int j = 4 * i; j < n; j++) out[j] = in[j];
    } else if (i < n) {
        out[i] = in[i];
    }
//// both
}

void run(const float* in, float* out, int n) {
    copy<<<(n + 127) / 128, 128>>>(in, out, n);
}
