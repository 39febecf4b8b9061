// A whole program.
__global__ void total(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++) sum += in[row * columns + c];
  out[row] = sum;
}
int main() {
  int rows = 100, columns = 300;
  float *out, *in;
  cudaMalloc(&out, rows * sizeof(float));
  cudaMalloc(&in, rows * columns * sizeof(float));
  total<<<(rows + 127) / 128, 128>>>(out, in, rows, columns);
}
