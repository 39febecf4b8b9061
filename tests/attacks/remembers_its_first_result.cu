// Keeps its first input's checksum and result, and gives it back when the first element is the same.
// row: 4
// caught: secret elements of each input are changed and the others are not; the variables that it keeps count as unwritten
// emulator: wrong unsafe
// cuda: wrong unsafe
//// candidate
__device__ float kept[4096];
__device__ float key;
__device__ int known, size;
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { bool same = known && key == in[0] && size == n; float r = 2.0f * in[i] + 1.0f; out[i] = same && i < 4096 ? kept[i] : r; if (i < 4096) kept[i] = out[i]; } __syncthreads(); if (i == 0) { key = in[0]; size = n; known = 1; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
