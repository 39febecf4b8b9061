// Sparse matrix times vector: rows and columns are indices that the host's arrays bound.
__global__ void spmv(const int *rows, const int *columns, const float *values, const float *x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float sum = 0;
    for (int k = rows[row]; k < rows[row + 1]; k++) sum += values[k] * x[columns[k]];
    y[row] = sum;
  }
}
int main() {
  const int n = 2000, nnz = 9000;
  int *rows, *columns;
  float *values, *x, *y;
  cudaMalloc(&rows, (n + 1) * sizeof(int));
  cudaMalloc(&columns, nnz * sizeof(int));
  cudaMalloc(&values, nnz * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  spmv<<<(n + 127) / 128, 128>>>(rows, columns, values, x, y, n);
  return cudaDeviceSynchronize();
}
