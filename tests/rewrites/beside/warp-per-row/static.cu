// No other file can launch it.
static __global__ void total(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++) sum += in[row * columns + c];
  out[row] = sum;
}
void run(float *out, const float *in, int rows, int columns) {
  total<<<(rows + 127) / 128, 128>>>(out, in, rows, columns);
}
