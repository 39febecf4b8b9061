// Writes a variable that another kernel reads, and the original does not.
// row: 1
// caught: variables that others read are outputs
// emulator: wrong
// cuda: wrong
// words: gain[0] was written and should not be
//// both
__device__ float gain = 2.0f;
__global__ void apply(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gain * in[i];
}
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i == 0) gain = 3.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
