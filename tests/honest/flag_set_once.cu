// A flag is set by one thread of each block that has a reason to, not by all.
// row: 1
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
__device__ int any_negative;
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n && in[i] < 0.0f) any_negative = 1;
//// candidate
    bool found = __syncthreads_or(i < n && in[i] < 0.0f);
    if (threadIdx.x == 0 && found) any_negative = 1;
//// both
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
