// One step of a bitonic sort, launched in two loops; the number of values is a power of two.
#define THREADS 512
#define BLOCKS 64
#define NUM_VALS (THREADS * BLOCKS)
__global__ void bitonic_sort_step(float *dev_values, int j, int k) {
  unsigned int i = threadIdx.x + blockDim.x * blockIdx.x;
  unsigned int ixj = i ^ j;
  if (ixj > i) {
    float a = dev_values[i], b = dev_values[ixj];
    if ((i & k) == 0 ? a > b : a < b) {
      dev_values[i] = b;
      dev_values[ixj] = a;
    }
  }
}
int main() {
  float *dev_values;
  size_t size = NUM_VALS * sizeof(float);
  cudaMalloc((void **)&dev_values, size);
  dim3 blocks(BLOCKS, 1);
  dim3 threads(THREADS, 1);
  for (int k = 2; k <= NUM_VALS; k <<= 1)
    for (int j = k >> 1; j > 0; j = j >> 1) bitonic_sort_step<<<blocks, threads>>>(dev_values, j, k);
  return cudaDeviceSynchronize();
}
