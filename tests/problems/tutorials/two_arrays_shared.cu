// One piece of dynamic shared memory cut into two arrays of other types.
__global__ void stats(const float *in, float *mean, int *largest, int n) {
  extern __shared__ float memory[];
  float *sums = memory;
  int *places = (int *)&sums[blockDim.x];
  int t = threadIdx.x;
  float sum = 0;
  int place = 0;
  for (int i = t; i < n; i += blockDim.x) {
    sum += in[blockIdx.x * n + i];
    if (in[blockIdx.x * n + i] > in[blockIdx.x * n + place]) place = i;
  }
  sums[t] = sum;
  places[t] = place;
  __syncthreads();
  if (t == 0) {
    for (int k = 1; k < blockDim.x; k++) {
      sums[0] += sums[k];
      if (in[blockIdx.x * n + places[k]] > in[blockIdx.x * n + places[0]]) places[0] = places[k];
    }
    mean[blockIdx.x] = sums[0] / n;
    largest[blockIdx.x] = places[0];
  }
}
int main() {
  int rows = 50, n = 700, nthreads = 128;
  float *in, *mean;
  int *largest;
  cudaMalloc(&in, sizeof(float) * rows * n);
  cudaMalloc(&mean, sizeof(float) * rows);
  cudaMalloc(&largest, sizeof(int) * rows);
  stats<<<rows, nthreads, nthreads * (sizeof(float) + sizeof(int))>>>(in, mean, largest, n);
  cudaDeviceSynchronize();
}
