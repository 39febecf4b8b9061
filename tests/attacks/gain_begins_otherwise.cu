// A variable that another kernel reads begins with another value.
// row: 1
// caught: first values of such variables are compared
// uncovered: output
// emulator: correct
// cuda: correct inconclusive slower
//// original
__device__ float gain = 2.0f;
//// candidate
__device__ float gain = 3.0f;
//// both
__global__ void apply(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gain * in[i];
}
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = in[i] * 2.0f + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
