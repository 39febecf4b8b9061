// Matrix product with the tile's width as a template argument that a macro gives.
#include <cstdio>
#define TILE_WIDTH 16
template <int TILE>
__global__ void matmul(float *c, const float *a, const float *b, int n) {
  __shared__ float as[TILE][TILE];
  __shared__ float bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < n / TILE; ++t) {
    as[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + col];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
int main() {
  const int n = 256;
  size_t bytes = n * n * sizeof(float);
  float *a, *b, *c;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, bytes);
  dim3 threads(TILE_WIDTH, TILE_WIDTH);
  dim3 grid(n / threads.x, n / threads.y);
  matmul<TILE_WIDTH><<<grid, threads>>>(c, a, b, n);
  cudaDeviceSynchronize();
  return 0;
}
