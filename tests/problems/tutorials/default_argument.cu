// Template arguments that the template itself gives.
template <typename T = float, int ROWS = 8, int TILE = 32>
__global__ void transpose(T *out, const T *in, int width, int height) {
  __shared__ T tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
int main() {
  const int width = 1024, height = 512;
  float *in, *out;
  cudaMalloc(&in, width * height * sizeof(float));
  cudaMalloc(&out, width * height * sizeof(float));
  dim3 grid(width / 32, height / 32), block(32, 8);
  transpose<><<<grid, block>>>(out, in, width, height);
  transpose<float, 8><<<grid, block>>>(out, in, width, height);
  cudaDeviceSynchronize();
}
