// A flag in a variable of the file is not set; what reads it may stand in another file.
// row: 1
// caught: variables that a kernel only writes are outputs
// emulator: wrong
// cuda: wrong
// words: any_negative[0] was not written
//// both
__device__ int any_negative;
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; if (in[i] < 0.0f) any_negative = 1; }
//// candidate
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
