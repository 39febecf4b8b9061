// Complex numbers as float2.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[2 * n] in
// warpwright: array out[2 * n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) { out[2 * i] = in[2 * i] * in[2 * i] - in[2 * i + 1] * in[2 * i + 1]; out[2 * i + 1] = 2.0f * in[2 * i] * in[2 * i + 1]; }
//// candidate
    if (i < n) {
        float2 z = reinterpret_cast<const float2*>(in)[i];
        reinterpret_cast<float2*>(out)[i] = make_float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y);
    }
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
