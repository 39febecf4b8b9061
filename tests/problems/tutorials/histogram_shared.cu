// Histogram of 256 bins in shared memory.
#define NUM_BINS 256
__global__ void histogram(const unsigned char *data, unsigned int *bins, long size) {
  __shared__ unsigned int local[NUM_BINS];
  local[threadIdx.x] = 0;
  __syncthreads();
  long i = threadIdx.x + blockIdx.x * blockDim.x, offset = blockDim.x * gridDim.x;
  while (i < size) {
    atomicAdd(&local[data[i]], 1);
    i += offset;
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
#define SIZE (100 * 1024)
int main() {
  unsigned char *data;
  unsigned int *bins;
  cudaMalloc((void **)&data, SIZE);
  cudaMalloc((void **)&bins, 256 * sizeof(int));
  cudaMemset(bins, 0, 256 * sizeof(int));
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  int blocks = prop.multiProcessorCount;
  histogram<<<blocks * 2, 256>>>(data, bins, SIZE);
  cudaDeviceSynchronize();
}
