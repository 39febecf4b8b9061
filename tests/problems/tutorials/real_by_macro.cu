// The type of the elements and the block's size depend on what is defined; the first in the text are not live.
#ifdef USE_SINGLE
typedef float real;
#define THREADS 1024
#else
typedef double real;
#define THREADS 128
#endif
__global__ void dot(const real *x, const real *y, real *partial, int n) {
  __shared__ real cache[THREADS];
  int i = blockIdx.x * THREADS + threadIdx.x;
  cache[threadIdx.x] = i < n ? x[i] * y[i] : 0;
  __syncthreads();
  for (int s = THREADS / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = cache[0];
}
int main() {
  int n = 33 * 1024;
  int blocks = (n + THREADS - 1) / THREADS;
  real *x, *y, *partial;
  cudaMalloc(&x, n * sizeof(real));
  cudaMalloc(&y, n * sizeof(real));
  cudaMalloc(&partial, blocks * sizeof(real));
  dot<<<blocks, THREADS>>>(x, y, partial, n);
  cudaDeviceSynchronize();
}
