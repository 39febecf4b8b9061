// Races in the styles of libraries: CRTP, scans that are types with storage of their own, lambdas, bits, planes of a volume.
#include <cuda_runtime.h>

constexpr int kBlock = 128;
constexpr int kScan = 64;

template <typename T>
struct DeviceArray {
  T *data = nullptr;
  size_t size = 0;
  explicit DeviceArray(size_t n) : size(n) { cudaMalloc(&data, n * sizeof(T)); }
  DeviceArray(const DeviceArray &) = delete;
  ~DeviceArray() { cudaFree(data); }
  void upload(const T *host) { cudaMemcpy(data, host, size * sizeof(T), cudaMemcpyHostToDevice); }
  void zero() { cudaMemset(data, 0, size * sizeof(T)); }
};

// wrong (races): the next tile is staged while the slower warps still read this one
template <typename Self>
struct StagedStencil {
  __device__ void run(float *out, const float *in, int n) const {
    __shared__ float stage[kBlock];
    for (int base = blockIdx.x * kBlock; base < n; base += gridDim.x * kBlock) {
      stage[threadIdx.x] = in[base + threadIdx.x];
      __syncthreads();
      out[base + threadIdx.x] = static_cast<const Self *>(this)->value(stage, threadIdx.x);
    }
  }
};
struct Mirror : StagedStencil<Mirror> {
  __device__ float value(const float *s, int t) const { return s[kBlock - 1 - t]; }
};
template <typename Op>
__global__ void staged(float *out, const float *in, int n, Op op) {
  op.run(out, in, n);
}
void run_staged(const float *host) {
  const int n = 64 * kBlock;
  DeviceArray<float> in(n), out(n);
  in.upload(host);
  staged<<<8, kBlock>>>(out.data, in.data, n, Mirror{});
  cudaDeviceSynchronize();
}

// right: a barrier ends each turn
template <typename Self>
struct WaitingStencil {
  __device__ void run(float *out, const float *in, int n) const {
    __shared__ float stage[kBlock];
    for (int base = blockIdx.x * kBlock; base < n; base += gridDim.x * kBlock) {
      stage[threadIdx.x] = in[base + threadIdx.x];
      __syncthreads();
      out[base + threadIdx.x] = static_cast<const Self *>(this)->value(stage, threadIdx.x);
      __syncthreads();
    }
  }
};
struct MirrorWaiting : WaitingStencil<MirrorWaiting> {
  __device__ float value(const float *s, int t) const { return s[kBlock - 1 - t]; }
};
template <typename Op>
__global__ void staged_waiting(float *out, const float *in, int n, Op op) {
  op.run(out, in, n);
}
void run_staged_waiting(const float *host) {
  const int n = 64 * kBlock;
  DeviceArray<float> in(n), out(n);
  in.upload(host);
  staged_waiting<<<8, kBlock>>>(out.data, in.data, n, MirrorWaiting{});
  cudaDeviceSynchronize();
}

// wrong (races): 32 threads set their bits of one word with plain operations
__global__ void above(unsigned *bits, const float *x, float limit, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (x[i] > limit) bits[i >> 5] |= 1u << (i & 31);
}
void run_above(const float *host) {
  const int n = 4096;
  DeviceArray<float> x(n);
  DeviceArray<unsigned> bits(n / 32);
  x.upload(host);
  bits.zero();
  above<<<8, 256>>>(bits.data, x.data, 0.5f, n);
  cudaDeviceSynchronize();
}

// right: the warp votes, and one lane stores the word
__global__ void above_by_vote(unsigned *bits, const float *x, float limit, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned word = __ballot_sync(0xffffffffu, x[i] > limit);
    if ((i & 31) == 0) bits[i >> 5] = word;
  }
}
void run_above_by_vote(const float *host) {
  const int n = 4096;
  DeviceArray<float> x(n);
  DeviceArray<unsigned> bits(n / 32);
  x.upload(host);
  bits.zero();
  above_by_vote<<<8, 256>>>(bits.data, x.data, 0.5f, n);
  cudaDeviceSynchronize();
}

// wrong (races): the scan's storage becomes that of the reduction while some threads still read it
template <typename T, int THREADS>
struct BlockScan {
  struct TempStorage {
    T value[2][THREADS];
  };
  TempStorage &temp;
  __device__ explicit BlockScan(TempStorage &storage) : temp(storage) {}
  __device__ T inclusive(T x) {
    int from = 0;
    temp.value[0][threadIdx.x] = x;
    __syncthreads();
    for (int d = 1; d < THREADS; d *= 2) {
      T sum = temp.value[from][threadIdx.x];
      if (threadIdx.x >= d) sum += temp.value[from][threadIdx.x - d];
      from ^= 1;
      temp.value[from][threadIdx.x] = sum;
      __syncthreads();
    }
    return temp.value[from][threadIdx.x] + temp.value[from][THREADS - 1];
  }
};
template <typename T, int THREADS>
struct BlockMax {
  struct TempStorage {
    T best[THREADS];
  };
  TempStorage &temp;
  __device__ explicit BlockMax(TempStorage &storage) : temp(storage) {}
  __device__ T of(T x) {
    temp.best[THREADS - 1 - threadIdx.x] = x;
    __syncthreads();
    for (int d = THREADS / 2; d > 0; d /= 2) {
      if (threadIdx.x < d) temp.best[threadIdx.x] = max(temp.best[threadIdx.x], temp.best[threadIdx.x + d]);
      __syncthreads();
    }
    return temp.best[0];
  }
};
__global__ void scan_and_max(int *out, const int *in) {
  using Scan = BlockScan<int, kScan>;
  using Max = BlockMax<int, kScan>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Max::TempStorage max;
  } temp;
  const int i = blockIdx.x * kScan + threadIdx.x;
  int sum = Scan(temp.scan).inclusive(in[i]);
  out[i] = sum - Max(temp.max).of(sum);
}
void run_scan_and_max(const int *host) {
  DeviceArray<int> in(4 * kScan), out(4 * kScan);
  in.upload(host);
  scan_and_max<<<4, kScan>>>(out.data, in.data);
  cudaDeviceSynchronize();
}

// right: a barrier before the storage is used again
template <typename T, int THREADS>
struct BlockPrefix {
  struct TempStorage {
    T value[2][THREADS];
  };
  TempStorage &temp;
  __device__ explicit BlockPrefix(TempStorage &storage) : temp(storage) {}
  __device__ T inclusive(T x) {
    int from = 0;
    temp.value[0][threadIdx.x] = x;
    __syncthreads();
    for (int d = 1; d < THREADS; d *= 2) {
      T sum = temp.value[from][threadIdx.x];
      if (threadIdx.x >= d) sum += temp.value[from][threadIdx.x - d];
      from ^= 1;
      temp.value[from][threadIdx.x] = sum;
      __syncthreads();
    }
    return temp.value[from][threadIdx.x] + temp.value[from][THREADS - 1];
  }
};
template <typename T, int THREADS>
struct BlockBest {
  struct TempStorage {
    T best[THREADS];
  };
  TempStorage &temp;
  __device__ explicit BlockBest(TempStorage &storage) : temp(storage) {}
  __device__ T of(T x) {
    temp.best[THREADS - 1 - threadIdx.x] = x;
    __syncthreads();
    for (int d = THREADS / 2; d > 0; d /= 2) {
      if (threadIdx.x < d) temp.best[threadIdx.x] = max(temp.best[threadIdx.x], temp.best[threadIdx.x + d]);
      __syncthreads();
    }
    return temp.best[0];
  }
};
__global__ void prefix_and_best(int *out, const int *in) {
  using Prefix = BlockPrefix<int, kScan>;
  using Best = BlockBest<int, kScan>;
  __shared__ union {
    typename Prefix::TempStorage prefix;
    typename Best::TempStorage best;
  } temp;
  const int i = blockIdx.x * kScan + threadIdx.x;
  int sum = Prefix(temp.prefix).inclusive(in[i]);
  __syncthreads();
  out[i] = sum - Best(temp.best).of(sum);
}
void run_prefix_and_best(const int *host) {
  DeviceArray<int> in(4 * kScan), out(4 * kScan);
  in.upload(host);
  prefix_and_best<<<4, kScan>>>(out.data, in.data);
  cudaDeviceSynchronize();
}

// wrong (races): the plane of the volume is replaced while neighbours still read it
template <int W, int H>
__global__ void planes(float *__restrict__ out, const float *__restrict__ in, int nx, int ny, int nz) {
  __shared__ float plane[H + 2][W + 2];
  const int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
  const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  const size_t slice = (size_t)nx * ny;
  const float *p = in + (size_t)y * nx + x;
  float *q = out + (size_t)y * nx + x;
  float below = p[0], here = p[slice];
  for (int z = 1; z < nz - 1; ++z) {
    float above = p[(z + 1) * slice];
    plane[ty][tx] = here;
    if (threadIdx.x == 0) plane[ty][0] = x > 0 ? p[z * slice - 1] : 0.0f;
    if (threadIdx.x == W - 1) plane[ty][W + 1] = x < nx - 1 ? p[z * slice + 1] : 0.0f;
    if (threadIdx.y == 0) plane[0][tx] = y > 0 ? p[z * slice - nx] : 0.0f;
    if (threadIdx.y == H - 1) plane[H + 1][tx] = y < ny - 1 ? p[z * slice + nx] : 0.0f;
    __syncthreads();
    q[z * slice] = below + above + plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx] - 6 * here;
    below = here;
    here = above;
  }
}
void run_planes(const float *host) {
  const int nx = 64, ny = 32, nz = 16;
  DeviceArray<float> in(nx * ny * nz), out(nx * ny * nz);
  in.upload(host);
  planes<32, 8><<<dim3(nx / 32, ny / 8), dim3(32, 8)>>>(out.data, in.data, nx, ny, nz);
  cudaDeviceSynchronize();
}

// right: when all have read
template <int W, int H>
__global__ void planes_in_turn(float *__restrict__ out, const float *__restrict__ in, int nx, int ny, int nz) {
  __shared__ float plane[H + 2][W + 2];
  const int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
  const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  const size_t slice = (size_t)nx * ny;
  const float *p = in + (size_t)y * nx + x;
  float *q = out + (size_t)y * nx + x;
  float below = p[0], here = p[slice];
  for (int z = 1; z < nz - 1; ++z) {
    float above = p[(z + 1) * slice];
    __syncthreads();
    plane[ty][tx] = here;
    if (threadIdx.x == 0) plane[ty][0] = x > 0 ? p[z * slice - 1] : 0.0f;
    if (threadIdx.x == W - 1) plane[ty][W + 1] = x < nx - 1 ? p[z * slice + 1] : 0.0f;
    if (threadIdx.y == 0) plane[0][tx] = y > 0 ? p[z * slice - nx] : 0.0f;
    if (threadIdx.y == H - 1) plane[H + 1][tx] = y < ny - 1 ? p[z * slice + nx] : 0.0f;
    __syncthreads();
    q[z * slice] = below + above + plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx] - 6 * here;
    below = here;
    here = above;
  }
}
void run_planes_in_turn(const float *host) {
  const int nx = 64, ny = 32, nz = 16;
  DeviceArray<float> in(nx * ny * nz), out(nx * ny * nz);
  in.upload(host);
  planes_in_turn<32, 8><<<dim3(nx / 32, ny / 8), dim3(32, 8)>>>(out.data, in.data, nx, ny, nz);
  cudaDeviceSynchronize();
}

// wrong (races): the lambda of a step adds and does not wait
__global__ void norms(float *out, const float *in, int columns) {
  extern __shared__ float part[];
  const float *row = in + (size_t)blockIdx.x * columns;
  auto fold = [&](int d) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
  };
  float own = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) own += row[c] * row[c];
  part[threadIdx.x] = own;
  __syncthreads();
  for (int d = blockDim.x / 2; d >= 1; d >>= 1) fold(d);
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(part[0]);
}
void run_norms(const float *host) {
  const int rows = 10, columns = 1000;
  DeviceArray<float> in(rows * columns), out(rows);
  in.upload(host);
  norms<<<rows, 256, 256 * sizeof(float)>>>(out.data, in.data, columns);
  cudaDeviceSynchronize();
}

// right: it waits
__global__ void norms_waiting(float *out, const float *in, int columns) {
  extern __shared__ float part[];
  const float *row = in + (size_t)blockIdx.x * columns;
  auto fold = [&](int d) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  };
  float own = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) own += row[c] * row[c];
  part[threadIdx.x] = own;
  __syncthreads();
  for (int d = blockDim.x / 2; d >= 1; d >>= 1) fold(d);
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(part[0]);
}
void run_norms_waiting(const float *host) {
  const int rows = 10, columns = 1000;
  DeviceArray<float> in(rows * columns), out(rows);
  in.upload(host);
  norms_waiting<<<rows, 256, 256 * sizeof(float)>>>(out.data, in.data, columns);
  cudaDeviceSynchronize();
}
