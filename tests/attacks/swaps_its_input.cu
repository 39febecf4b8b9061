// Computes the right result and leaves its input changed for the next kernel.
// row: 2
// caught: inputs are fingerprinted after each run
// emulator: unsafe
// cuda: unsafe
// words: changes its input in
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; const_cast<float*>(in)[i] = out[i]; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
