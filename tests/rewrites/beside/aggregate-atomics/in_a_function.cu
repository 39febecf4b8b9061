template <int width>
__device__ __forceinline__ void distances(const float *__restrict__ a, int n, float *__restrict__ out) {
  int x = threadIdx.x, y = threadIdx.y;
  __shared__ float sum;
  if (x == 0 && y == 0) sum = 0;
  __syncthreads();

  float part = 0;
  for (int i = blockIdx.x * width + y * 32 + x; i < n; i += gridDim.x * width)
    part += a[i] * a[i];

  atomicAdd(&sum, part);
  __syncthreads();
  if (x == 0 && y == 0) out[blockIdx.x] = sum;
}

__global__ void block_distances(const float *a, int n, float *out) {
  distances<256>(a, n, out);
}

void run(const float *a, int n, float *out) {
  block_distances<<<64, dim3(32, 8)>>>(a, n, out);
}
