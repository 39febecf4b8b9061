// Writes its result transposed.
// row: 13
// caught: elements are compared in place
// emulator: wrong
// cuda: wrong
//// both
// warpwright: array in[width * height] in
// warpwright: array out[width * height] out
// warpwright: launch grid((width + 15) / 16, (height + 15) / 16) block(16, 16)
// warpwright: shape width=256 height=200
__global__ void twice(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= width || y >= height) return;
//// original
    out[y * width + x] = 2.0f * in[y * width + x];
//// candidate
    out[x * height + y] = 2.0f * in[y * width + x];
//// both
}
