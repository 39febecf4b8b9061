// A host template launches: the type comes from its caller, the size of shared memory from the type.
template <typename T>
struct SharedMemory {
  __device__ inline operator T *() {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
};
template <class T>
__global__ void reduce0(T *g_idata, T *g_odata, unsigned int n) {
  T *sdata = SharedMemory<T>();
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = (i < n) ? g_idata[i] : 0;
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if ((tid % (2 * s)) == 0) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
template <class T>
void reduce(int size, int threads, int blocks, T *d_idata, T *d_odata) {
  dim3 dimBlock(threads, 1, 1);
  dim3 dimGrid(blocks, 1, 1);
  int smemSize = (threads <= 32) ? 2 * threads * sizeof(T) : threads * sizeof(T);
  reduce0<T><<<dimGrid, dimBlock, smemSize>>>(d_idata, d_odata, size);
}
int main() {
  int size = 1 << 16, threads = 256, blocks = size / threads;
  double *in, *out;
  cudaMalloc(&in, size * sizeof(double));
  cudaMalloc(&out, blocks * sizeof(double));
  reduce<double>(size, threads, blocks, in, out);
  cudaDeviceSynchronize();
}
