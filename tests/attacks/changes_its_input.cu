// Sets its input to zero and writes what that gives, so that whoever runs next agrees.
// row: 2
// caught: inputs are private to each run and fingerprinted before and after
// emulator: unsafe
// cuda: unsafe wrong
// words: changes its input in | 
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { const_cast<float*>(in)[i] = 0.0f; out[i] = 1.0f; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
