// A template over the type and the block, whose shared memory has the type's size; instantiated through `using`.
template <typename T, unsigned blockSize>
__global__ void reduce(T *g_in, T *g_out, unsigned n) {
  extern __shared__ unsigned char memory[];
  T *sdata = reinterpret_cast<T *>(memory);
  unsigned tid = threadIdx.x;
  T sum = 0;
  for (unsigned i = blockIdx.x * blockSize + tid; i < n; i += blockSize * gridDim.x) sum += g_in[i];
  sdata[tid] = sum;
  __syncthreads();
  for (unsigned s = blockSize / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_out[blockIdx.x] = sdata[0];
}
using value_t = double;
constexpr unsigned kThreads = 128;
int main() {
  const unsigned n = 100000, blocks = 64;
  value_t *in, *out;
  cudaMalloc(&in, n * sizeof(value_t));
  cudaMalloc(&out, blocks * sizeof(value_t));
  reduce<value_t, kThreads><<<blocks, kThreads, kThreads * sizeof(value_t)>>>(in, out, n);
  cudaDeviceSynchronize();
}
