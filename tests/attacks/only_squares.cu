// Takes the width for the height: right for squares.
// row: 5
// caught: sizes that differ by axis
// emulator: wrong unsafe
// cuda: wrong unsafe
//// both
// warpwright: array in[width * height] in
// warpwright: array out[width * height] out
// warpwright: launch grid((width + 15) / 16, (height + 15) / 16) block(16, 16)
// warpwright: shape width=256 height=256
__global__ void flip(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
//// original
    if (x < width && y < height) out[x * height + y] = in[y * width + x];
//// candidate
    if (x < width && y < height) out[x * width + y] = in[y * width + x];
//// both
}
