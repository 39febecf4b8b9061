// Counts its launches, and computes nothing after eighty.
// row: 16
// caught: what it leaves in its variables must not matter; every timed output is compared
// emulator: wrong
// cuda: wrong
//// candidate
__device__ unsigned calls;
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    unsigned launches = atomicAdd(&calls, i == 0); if (launches > 80) return; if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
