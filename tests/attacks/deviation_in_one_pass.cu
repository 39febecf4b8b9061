// Takes the deviation from two sums, which cancel where the mean is far from zero.
// row: 7
// caught: values whose mean is far from zero
// emulator: wrong
// cuda: wrong
// words: offset values
//// both
// warpwright: array in[rows * 48] in
// warpwright: array out[rows] out
__global__ void deviation(const float* in, float* out, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* row = in + r * 48;
    float mean = 0.0f, square = 0.0f;
//// original
    for (int k = 0; k < 48; k++) mean += row[k] / 48.0f;
    for (int k = 0; k < 48; k++) square += (row[k] - mean) * (row[k] - mean);
    out[r] = sqrtf(square / 48.0f);
//// candidate
    for (int k = 0; k < 48; k++) { mean += row[k] / 48.0f; square += row[k] * row[k]; }
    out[r] = sqrtf(fabsf(square / 48.0f - mean * mean));
//// both
}

void run(const float* in, float* out, int rows) {
    deviation<<<(rows + 63) / 64, 64>>>(in, out, rows);
}
