// Works in place: the right result, in the array of the input.
// row: 13
// caught: the input is fingerprinted, the output must be written
// emulator: wrong unsafe
// cuda: wrong unsafe
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) const_cast<float*>(in)[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
