// Divides by its input.
// row: 6
// caught: zeros
// emulator: wrong
// cuda: wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i];
//// candidate
    if (i < n) out[i] = 1.0f / (1.0f / in[i]) ;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
