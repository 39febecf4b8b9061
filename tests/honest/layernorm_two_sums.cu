// A layer norm whose mean and variance come from one pass with Welford's update.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[rows * columns] in
// warpwright: array out[rows * columns] out
// warpwright: launch grid(rows) block(64)
// warpwright: shape rows=40 columns=300
__global__ void layernorm(const float* in, float* out, int rows, int columns) {
    const float* row = in + (size_t)blockIdx.x * columns;
    float* to = out + (size_t)blockIdx.x * columns;
    __shared__ float partial[64];
    int t = threadIdx.x;
//// original
    float sum = 0.0f;
    for (int j = 0; j < columns; j++) sum += row[j];
    float mean = sum / columns, square = 0.0f;
    for (int j = 0; j < columns; j++) square += (row[j] - mean) * (row[j] - mean);
    float scale = rsqrtf(square / columns + 1.0e-5f);
    partial[t] = 0.0f;
    for (int j = t; j < columns; j += 64) to[j] = (row[j] - mean) * scale;
//// candidate
    float sum = 0.0f;
    for (int j = t; j < columns; j += 64) sum += row[j];
    partial[t] = sum;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) partial[t] += partial[t + s]; __syncthreads(); }
    float mean = partial[0] / columns, square = 0.0f;
    __syncthreads();
    for (int j = t; j < columns; j += 64) square += (row[j] - mean) * (row[j] - mean);
    partial[t] = square;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) partial[t] += partial[t + s]; __syncthreads(); }
    float scale = rsqrtf(partial[0] / columns + 1.0e-5f);
    for (int j = t; j < columns; j += 64) to[j] = (row[j] - mean) * scale;
//// both
}
