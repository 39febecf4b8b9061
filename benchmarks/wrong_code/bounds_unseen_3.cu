// Addresses outside of their arrays in the styles of libraries: packed bits, halos of volumes, unions, owners with views.
#include <cuda_runtime.h>
#include <memory>

template <typename T>
struct View {
  T *data;
  int size;
  __device__ T &operator[](int i) const { return data[i]; }
};
template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(int n) : size_(n) { cudaMalloc(&data_, sizeof(T) * n); }
  DeviceVector(DeviceVector &&other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  ~DeviceVector() { cudaFree(data_); }
  void assign(const T *host) { cudaMemcpy(data_, host, sizeof(T) * size_, cudaMemcpyHostToDevice); }
  void zero() { cudaMemset(data_, 0, sizeof(T) * size_); }
  T *data() { return data_; }
  View<T> view() { return {data_, size_}; }

 private:
  T *data_ = nullptr;
  int size_;
};

// wrong (bounds): the bits of the last elements have no word
__global__ void signs(unsigned *words, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned word = __ballot_sync(0xffffffffu, i < n && x[i] < 0.0f);
  if (i < n && i % 32 == 0) words[i / 32] = word;
}
void run_signs(const float *host) {
  const int n = 1000;
  DeviceVector<float> x(n);
  DeviceVector<unsigned> words(n / 32);
  x.assign(host);
  signs<<<(n + 127) / 128, 128>>>(words.data(), x.data(), n);
  cudaDeviceSynchronize();
}

// right: they have
__global__ void signs_rounded_up(unsigned *words, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned word = __ballot_sync(0xffffffffu, i < n && x[i] < 0.0f);
  if (i < n && i % 32 == 0) words[i / 32] = word;
}
void run_signs_rounded_up(const float *host) {
  const int n = 1000;
  DeviceVector<float> x(n);
  DeviceVector<unsigned> words((n + 31) / 32);
  x.assign(host);
  signs_rounded_up<<<(n + 127) / 128, 128>>>(words.data(), x.data(), n);
  cudaDeviceSynchronize();
}

// wrong (bounds): the volume has a halo in x and y, and is read with one in z
constexpr int kX = 32, kY = 16, kZ = 8;
__global__ void laplace(float *out, const float *in) {
  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
  const int row = kX + 2, slice = row * (kY + 2);
  const float *c = in + (z + 1) * slice + (y + 1) * row + x + 1;
  out[(z * kY + y) * kX + x] = c[-slice] + c[slice] + c[-row] + c[row] + c[-1] + c[1] - 6.0f * c[0];
}
void run_laplace(const float *host) {
  DeviceVector<float> in((kX + 2) * (kY + 2) * kZ), out(kX * kY * kZ);
  in.assign(host);
  laplace<<<kZ, dim3(kX, kY)>>>(out.data(), in.data());
  cudaDeviceSynchronize();
}

// right: it has one in z
constexpr int kWidth = 32, kHeight = 16, kDepth = 8;
__global__ void laplace_in_halo(float *out, const float *in) {
  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
  const int row = kWidth + 2, slice = row * (kHeight + 2);
  const float *c = in + (z + 1) * slice + (y + 1) * row + x + 1;
  out[(z * kHeight + y) * kWidth + x] = c[-slice] + c[slice] + c[-row] + c[row] + c[-1] + c[1] - 6.0f * c[0];
}
void run_laplace_in_halo(const float *host) {
  DeviceVector<float> in((kWidth + 2) * (kHeight + 2) * (kDepth + 2)), out(kWidth * kHeight * kDepth);
  in.assign(host);
  laplace_in_halo<<<kDepth, dim3(kWidth, kHeight)>>>(out.data(), in.data());
  cudaDeviceSynchronize();
}

// wrong (bounds): the quads of a tile are 32, and read as scalars from a fifth lane's on
union Quads {
  float4 quad[32];
  float scalar[128];
};
__global__ void shifted_quads(float *out, const float4 *in) {
  __shared__ Quads tile;
  if (threadIdx.x < 32) tile.quad[threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = tile.scalar[threadIdx.x + 4];
}
void run_shifted_quads(const float4 *host) {
  DeviceVector<float4> in(32 * 16);
  DeviceVector<float> out(128 * 16);
  in.assign(host);
  shifted_quads<<<16, 128>>>(out.data(), in.data());
  cudaDeviceSynchronize();
}

// right: around the end
union Fours {
  float4 quad[32];
  float scalar[128];
};
__global__ void rotated_quads(float *out, const float4 *in) {
  __shared__ Fours tile;
  if (threadIdx.x < 32) tile.quad[threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = tile.scalar[(threadIdx.x + 4) % 128];
}
void run_rotated_quads(const float4 *host) {
  DeviceVector<float4> in(32 * 16);
  DeviceVector<float> out(128 * 16);
  in.assign(host);
  rotated_quads<<<16, 128>>>(out.data(), in.data());
  cudaDeviceSynchronize();
}

// wrong (bounds): a lambda over the view's elements, and nobody asks for its size
template <typename F>
__global__ void for_each_index(int n, F body) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  body(i);
}
struct Scale {
  View<float> x;
  float factor;
  __device__ void operator()(int i) const { x[i] *= factor; }
};
void run_scale(const float *host) {
  const int n = 1000;
  auto x = std::make_unique<DeviceVector<float>>(n);
  x->assign(host);
  for_each_index<<<(n + 255) / 256, 256>>>(n, Scale{x->view(), 2.0f});
  cudaDeviceSynchronize();
}

// right: the kernel does
template <typename F>
__global__ void for_each_below(int n, F body) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) body(i);
}
struct Scaled {
  View<float> x;
  float factor;
  __device__ void operator()(int i) const { x[i] *= factor; }
};
void run_scaled(const float *host) {
  const int n = 1000;
  auto x = std::make_unique<DeviceVector<float>>(n);
  x->assign(host);
  for_each_below<<<(n + 255) / 256, 256>>>(n, Scaled{x->view(), 2.0f});
  cudaDeviceSynchronize();
}
