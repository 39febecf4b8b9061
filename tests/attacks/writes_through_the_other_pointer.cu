// Writes into the second input instead of its output.
// row: 2
// caught: inputs are fingerprinted after each run
// emulator: unsafe wrong
// cuda: unsafe wrong
//// both
// warpwright: array in[n] in
// warpwright: array by[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, const float* by, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] * by[i];
//// candidate
    if (i < n) { out[i] = in[i] * by[i]; const_cast<float*>(by)[i] = out[i]; }
//// both
}

void run(const float* in, const float* by, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, by, out, n);
}
