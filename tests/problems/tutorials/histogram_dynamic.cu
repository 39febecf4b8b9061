// Histogram of as many bins as the caller wants, in dynamic shared memory; the elements are bounded by the bins.
__global__ void histogram(int *bins, const int *in, int n, int nbins) {
  extern __shared__ int local[];
  for (int b = threadIdx.x; b < nbins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < nbins; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}
void run(int *bins, int *in, int n, int nbins) {
  size_t bytes = nbins * sizeof(int);
  histogram<<<32, 256, bytes>>>(bins, in, n, nbins);
}
int main() {
  const int n = 50000, nbins = 100;
  int *in, *bins;
  cudaMalloc(&in, sizeof(int) * n);
  cudaMalloc(&bins, nbins * sizeof(int));
  cudaMemset(bins, 0, nbins * sizeof(int));
  run(bins, in, n, nbins);
  cudaDeviceSynchronize();
}
