// Softmax with the maximum and the sum in one pass.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[rows * columns] in
// warpwright: array out[rows * columns] out
// warpwright: launch grid(rows) block(64)
// warpwright: shape rows=40 columns=300
__global__ void softmax(const float* in, float* out, int rows, int columns) {
    const float* row = in + (size_t)blockIdx.x * columns;
    float* to = out + (size_t)blockIdx.x * columns;
    __shared__ float partial[64];
    int t = threadIdx.x;
//// original
    float most = -3.4e38f;
    for (int j = t; j < columns; j += 64) most = fmaxf(most, row[j]);
    partial[t] = most;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) partial[t] = fmaxf(partial[t], partial[t + s]); __syncthreads(); }
    most = partial[0];
    __syncthreads();
    float sum = 0.0f;
    for (int j = t; j < columns; j += 64) sum += expf(row[j] - most);
    partial[t] = sum;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) partial[t] += partial[t + s]; __syncthreads(); }
    sum = partial[0];
    for (int j = t; j < columns; j += 64) to[j] = expf(row[j] - most) / sum;
//// candidate
    __shared__ float sums[64];
    float most = -3.4e38f, sum = 0.0f;
    for (int j = t; j < columns; j += 64) {
        float next = fmaxf(most, row[j]);
        sum = sum * expf(most - next) + expf(row[j] - next);
        most = next;
    }
    partial[t] = most, sums[t] = sum;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (t < s) {
            float next = fmaxf(partial[t], partial[t + s]);
            sums[t] = sums[t] * expf(partial[t] - next) + sums[t + s] * expf(partial[t + s] - next);
            partial[t] = next;
        }
        __syncthreads();
    }
    most = partial[0], sum = sums[0];
    for (int j = t; j < columns; j += 64) to[j] = expf(row[j] - most) / sum;
//// both
}
