// Asks for more shared memory than a block may have.
// row: 11
// caught: what a block may have on the architecture is known
// emulator: wrong
// cuda: wrong
// words: more than the
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    
//// original
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
//// candidate
    cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 240000);
    scale<<<(n + 127) / 128, 128, 240000>>>(in, out, n);
//// both
}
