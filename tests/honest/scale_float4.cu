// Four floats at once, with a tail.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    if (4 * i + 3 < n) {
        float4 four = reinterpret_cast<const float4*>(in)[i];
        four.x *= 2.0f, four.y *= 2.0f, four.z *= 2.0f, four.w *= 2.0f;
        reinterpret_cast<float4*>(out)[i] = four;
    } else {
        for (int j = 4 * i; j < n; j++) out[j] = 2.0f * in[j];
    }
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
