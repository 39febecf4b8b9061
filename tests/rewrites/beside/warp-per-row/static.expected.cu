// No other file can launch it.
static __global__ void total(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = lane; c < columns; c += 32) sum += in[row * columns + c];
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (lane == 0)
    out[row] = sum;
}
void run(float *out, const float *in, int rows, int columns) {
  total<<<(rows + 127) / 128 * 32, 128>>>(out, in, rows, columns);
}
