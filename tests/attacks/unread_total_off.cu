// A total that no text here reads misses an element: another file may read it.
// row: 1
// caught: other values in a variable are told
// uncovered: output
// emulator: correct
// cuda: correct inconclusive slower
//// both
__device__ int total;
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; atomicAdd(&total, i % 3); }
//// candidate
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; if (i != 31) atomicAdd(&total, i % 3); }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
