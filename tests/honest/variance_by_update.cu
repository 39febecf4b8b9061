// A variance by Welford's update in place of two passes: as good where the mean is far from zero.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[rows * 40] in
// warpwright: array out[rows] out
__global__ void variance(const float* in, float* out, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* row = in + r * 40;
    float mean = 0.0f, square = 0.0f;
//// original
    for (int k = 0; k < 40; k++) mean += row[k];
    mean /= 40.0f;
    for (int k = 0; k < 40; k++) square += (row[k] - mean) * (row[k] - mean);
//// candidate
    for (int k = 0; k < 40; k++) {
        float delta = row[k] - mean;
        mean += delta / (float)(k + 1);
        square += delta * (row[k] - mean);
    }
//// both
    out[r] = square / 40.0f;
}

void run(const float* in, float* out, int rows) {
    variance<<<(rows + 63) / 64, 64>>>(in, out, rows);
}
