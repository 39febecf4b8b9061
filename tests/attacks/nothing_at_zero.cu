// Writes an element even where there is none.
// row: 5
// caught: a launch on no elements, where the grid allows one
// emulator: unsafe
// cuda: unsafe
// words: n = 0
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid(8) block(64)
__global__ void scale(const float* in, float* out, int n) {
    int step = gridDim.x * blockDim.x;
//// original
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = 2.0f * in[i];
//// candidate
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n || i == 0) do out[i] = n > 0 ? 2.0f * in[i] : 0.0f; while ((i += step) < n);
//// both
}
