// As in NVIDIA's samples: the block's size is a template argument, picked by a switch over the run-time size.
template <class T, unsigned int blockSize>
__global__ void reduce(T *in, T *out, unsigned int n) {
  extern __shared__ T sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
  T sum = (i < n) ? in[i] : 0;
  if (i + blockSize < n) sum += in[i + blockSize];
  sdata[tid] = sum;
  __syncthreads();
  if (blockSize >= 512 && tid < 256) sdata[tid] = sum = sum + sdata[tid + 256];
  __syncthreads();
  if (blockSize >= 256 && tid < 128) sdata[tid] = sum = sum + sdata[tid + 128];
  __syncthreads();
  if (blockSize >= 128 && tid < 64) sdata[tid] = sum = sum + sdata[tid + 64];
  __syncthreads();
  if (tid < 32) {
    if (blockSize >= 64) sum += sdata[tid + 32];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  if (tid == 0) out[blockIdx.x] = sum;
}
template <class T>
void sums(int size, int threads, int blocks, T *in, T *out) {
  int smemSize = threads * sizeof(T);
  switch (threads) {
    case 512:
      reduce<T, 512><<<blocks, threads, smemSize>>>(in, out, size);
      break;
    case 256:
      reduce<T, 256><<<blocks, threads, smemSize>>>(in, out, size);
      break;
    case 128:
      reduce<T, 128><<<blocks, threads, smemSize>>>(in, out, size);
      break;
  }
}
int main() {
  int size = 1 << 18, threads = 256;
  int blocks = (size + threads * 2 - 1) / (threads * 2);
  float *in, *out;
  cudaMalloc(&in, size * sizeof(float));
  cudaMalloc(&out, blocks * sizeof(float));
  sums<float>(size, threads, blocks, in, out);
  return cudaDeviceSynchronize();
}
