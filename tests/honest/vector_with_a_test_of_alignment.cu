// Vectors of four where addresses allow it, and single elements where a launch passes an odd one.
// row: 5
// emulator: correct
// cuda: faster correct inconclusive slower
//// both
#include <cstdint>
__global__ void negate(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    for (int k = 4 * i; k < n && k < 4 * i + 4; k++) out[k] = -in[k];
//// candidate
    bool aligned = (((uintptr_t)in | (uintptr_t)out) & 15) == 0;
    if (aligned && 4 * i + 3 < n) {
        float4 v = reinterpret_cast<const float4*>(in)[i];
        reinterpret_cast<float4*>(out)[i] = make_float4(-v.x, -v.y, -v.z, -v.w);
    } else {
        for (int k = 4 * i; k < n && k < 4 * i + 4; k++) out[k] = -in[k];
    }
//// both
}

void run(const float* in, float* out, int n) {
    negate<<<(n / 4 + 128) / 128, 128>>>(in, out, n);
    negate<<<(n / 4 + 128) / 128, 128>>>(in + 1, out, n - 1);
}
