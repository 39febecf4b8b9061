// Memory that is handed over wrongly, in the styles of libraries: owners that end, chunks in streams, registered pages, passes.
#include <cuda_runtime.h>
#include <cstdlib>
#include <vector>

template <typename T>
class Owner {
 public:
  explicit Owner(int n) { cudaMalloc(&data_, sizeof(T) * n); }
  Owner(const Owner &) = delete;
  ~Owner() { cudaFree(data_); }
  T *get() const { return data_; }

 private:
  T *data_ = nullptr;
};

// wrong (memory): the owner of the input ends with its scope
__global__ void offsets(float *out, const float *in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1.0f;
}
void run_offsets(const float *host, int n) {
  Owner<float> out(n);
  const float *in;
  {
    Owner<float> staging(n);
    cudaMemcpy(staging.get(), host, n * sizeof(float), cudaMemcpyHostToDevice);
    in = staging.get();
  }
  offsets<<<(n + 127) / 128, 128>>>(out.get(), in, n);
  cudaDeviceSynchronize();
}

// right: it outlives the launch
__global__ void offsets_of_owner(float *out, const float *in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1.0f;
}
void run_offsets_of_owner(const float *host, int n) {
  Owner<float> out(n);
  Owner<float> staging(n);
  const float *in;
  {
    cudaMemcpy(staging.get(), host, n * sizeof(float), cudaMemcpyHostToDevice);
    in = staging.get();
  }
  offsets_of_owner<<<(n + 127) / 128, 128>>>(out.get(), in, n);
  cudaDeviceSynchronize();
}

// wrong (memory): each chunk is copied by its elements
__global__ void exponentials(float *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = expf(x[i]);
}
void run_exponentials() {
  const int n = 1 << 16, chunks = 4, chunk = n / chunks;
  float *pinned, *x;
  cudaMallocHost(&pinned, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  for (int i = 0; i < n; ++i) pinned[i] = 0.001f * i;
  cudaStream_t streams[chunks];
  for (int c = 0; c < chunks; ++c) {
    cudaStreamCreate(&streams[c]);
    cudaMemcpyAsync(x + c * chunk, pinned + c * chunk, chunk, cudaMemcpyHostToDevice, streams[c]);
    exponentials<<<8, 256, 0, streams[c]>>>(x + c * chunk, chunk);
    cudaMemcpyAsync(pinned + c * chunk, x + c * chunk, chunk * sizeof(float), cudaMemcpyDeviceToHost, streams[c]);
  }
  cudaDeviceSynchronize();
  cudaFree(x);
  cudaFreeHost(pinned);
}

// right: by its bytes
__global__ void exponentials_of_chunks(float *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = expf(x[i]);
}
void run_exponentials_of_chunks() {
  const int n = 1 << 16, chunks = 4, chunk = n / chunks;
  float *pinned, *x;
  cudaMallocHost(&pinned, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  for (int i = 0; i < n; ++i) pinned[i] = 0.001f * i;
  cudaStream_t streams[chunks];
  for (int c = 0; c < chunks; ++c) {
    cudaStreamCreate(&streams[c]);
    cudaMemcpyAsync(x + c * chunk, pinned + c * chunk, chunk * sizeof(float), cudaMemcpyHostToDevice, streams[c]);
    exponentials_of_chunks<<<8, 256, 0, streams[c]>>>(x + c * chunk, chunk);
    cudaMemcpyAsync(pinned + c * chunk, x + c * chunk, chunk * sizeof(float), cudaMemcpyDeviceToHost, streams[c]);
  }
  cudaDeviceSynchronize();
  cudaFree(x);
  cudaFreeHost(pinned);
}

// wrong (memory): pages that nobody registered are handed to the kernel
__global__ void counted_zeros(unsigned *count, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] == 0.0f) atomicAdd(count, 1u);
}
void run_counted_zeros(int n) {
  float *pages = static_cast<float *>(std::aligned_alloc(4096, n * sizeof(float)));
  for (int i = 0; i < n; ++i) pages[i] = i % 7;
  unsigned *count;
  cudaMalloc(&count, sizeof(unsigned));
  cudaMemset(count, 0, sizeof(unsigned));
  counted_zeros<<<(n + 255) / 256, 256>>>(count, pages, n);
  cudaDeviceSynchronize();
  cudaFree(count);
  std::free(pages);
}

// right: they are registered, and the kernel gets their address on the device
__global__ void counted_zeros_of_pages(unsigned *count, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] == 0.0f) atomicAdd(count, 1u);
}
void run_counted_zeros_of_pages(int n) {
  float *pages = static_cast<float *>(std::aligned_alloc(4096, n * sizeof(float)));
  for (int i = 0; i < n; ++i) pages[i] = i % 7;
  unsigned *count;
  float *there;
  cudaHostRegister(pages, n * sizeof(float), cudaHostRegisterMapped);
  cudaHostGetDevicePointer(&there, pages, 0);
  cudaMalloc(&count, sizeof(unsigned));
  cudaMemset(count, 0, sizeof(unsigned));
  counted_zeros_of_pages<<<(n + 255) / 256, 256>>>(count, there, n);
  cudaDeviceSynchronize();
  cudaHostUnregister(pages);
  cudaFree(count);
  std::free(pages);
}

// wrong (memory): the second pass adds up a thousand parts, of which the first wrote a hundred
__global__ void parts(float *part, const float *x) {
  __shared__ float s[128];
  s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) part[blockIdx.x] = s[0];
}
__global__ void whole(float *out, const float *part) {
  __shared__ float s[1024];
  s[threadIdx.x] = part[threadIdx.x];
  __syncthreads();
  for (int d = 512; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = s[0];
}
void run_whole(const std::vector<float> &host) {
  const int blocks = 100;
  float *x, *part, *out;
  cudaMalloc(&x, blocks * 128 * sizeof(float));
  cudaMalloc(&part, 1024 * sizeof(float));
  cudaMalloc(&out, sizeof(float));
  cudaMemcpy(x, host.data(), blocks * 128 * sizeof(float), cudaMemcpyHostToDevice);
  parts<<<blocks, 128>>>(part, x);
  whole<<<1, 1024>>>(out, part);
  cudaDeviceSynchronize();
}

// right: the others are zero
__global__ void parts_of_sum(float *part, const float *x) {
  __shared__ float s[128];
  s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) part[blockIdx.x] = s[0];
}
__global__ void whole_sum(float *out, const float *part) {
  __shared__ float s[1024];
  s[threadIdx.x] = part[threadIdx.x];
  __syncthreads();
  for (int d = 512; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = s[0];
}
void run_whole_sum(const std::vector<float> &host) {
  const int blocks = 100;
  float *x, *part, *out;
  cudaMalloc(&x, blocks * 128 * sizeof(float));
  cudaMalloc(&part, 1024 * sizeof(float));
  cudaMalloc(&out, sizeof(float));
  cudaMemcpy(x, host.data(), blocks * 128 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(part, 0, 1024 * sizeof(float));
  parts_of_sum<<<blocks, 128>>>(part, x);
  whole_sum<<<1, 1024>>>(out, part);
  cudaDeviceSynchronize();
}
