// Reduction in dynamic shared memory; its size is computed from a type's.
#include <cstdlib>
__global__ void reduce(const double *in, double *out, unsigned n) {
  extern __shared__ double sdata[];
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
  double sum = (i < n) ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sdata[tid] = sum;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = sdata[0];
}
int main(int argc, char **argv) {
  int size = 1 << 20;
  int maxThreads = 256;
  int threads = (size < maxThreads * 2) ? 128 : maxThreads;
  int blocks = (size + (threads * 2 - 1)) / (threads * 2);
  int smemSize = (threads <= 32) ? 2 * threads * sizeof(double) : threads * sizeof(double);
  double *d_in, *d_out;
  cudaMalloc((void **)&d_in, size * sizeof(double));
  cudaMalloc((void **)&d_out, blocks * sizeof(double));
  reduce<<<blocks, threads, smemSize>>>(d_in, d_out, size);
  cudaDeviceSynchronize();
  return 0;
}
