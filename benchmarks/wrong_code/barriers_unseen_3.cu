// Barriers in the styles of libraries: partitions, bases that wait for what is derived, lambdas that wait, roles by barriers.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_runtime.h>
#include <utility>
namespace cg = cooperative_groups;

template <typename T>
struct DeviceArray {
  T *data = nullptr;
  size_t size = 0;
  explicit DeviceArray(size_t n) : size(n) { cudaMalloc(&data, n * sizeof(T)); }
  DeviceArray(const DeviceArray &) = delete;
  ~DeviceArray() { cudaFree(data); }
  void upload(const T *host) { cudaMemcpy(data, host, size * sizeof(T), cudaMemcpyHostToDevice); }
};

// wrong (barriers): ranks of the tile that have no element leave before it shuffles
template <typename Tile>
__device__ float tile_sum(const Tile &tile, float x) {
  for (unsigned d = tile.size() / 2; d > 0; d /= 2) x += tile.shfl_down(x, d);
  return x;
}
__global__ void row_sums(float *out, const float *in, int columns) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
  if (tile.thread_rank() >= columns) return;
  float total = tile_sum(tile, in[row * columns + tile.thread_rank()]);
  if (tile.thread_rank() == 0) out[row] = total;
}
void run_row_sums(const float *host) {
  const int rows = 64, columns = 20;
  DeviceArray<float> in(rows * columns), out(rows);
  in.upload(host);
  row_sums<<<rows / 4, 128>>>(out.data, in.data, columns);
  cudaDeviceSynchronize();
}

// right: they bring zero
template <typename Tile>
__device__ float tile_total(const Tile &tile, float x) {
  for (unsigned d = tile.size() / 2; d > 0; d /= 2) x += tile.shfl_down(x, d);
  return x;
}
__global__ void row_totals(float *out, const float *in, int columns) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
  float own = tile.thread_rank() < columns ? in[row * columns + tile.thread_rank()] : 0.0f;
  float total = tile_total(tile, own);
  if (tile.thread_rank() == 0) out[row] = total;
}
void run_row_totals(const float *host) {
  const int rows = 64, columns = 20;
  DeviceArray<float> in(rows * columns), out(rows);
  in.upload(host);
  row_totals<<<rows / 4, 128>>>(out.data, in.data, columns);
  cudaDeviceSynchronize();
}

// wrong (barriers): the lambda waits, and the rows of a block are no multiple of its threads in y
template <typename F>
__device__ void for_rows(int rows, F &&body) {
  for (int r = threadIdx.y; r < rows; r += blockDim.y) std::forward<F>(body)(r);
}
__global__ void spread(float *out, const float *in, int rows) {
  __shared__ float line[8][32];
  for_rows(rows, [&](int r) {
    line[threadIdx.y][threadIdx.x] = in[r * 32 + threadIdx.x];
    __syncthreads();
    out[r * 32 + threadIdx.x] = line[threadIdx.y][31 - threadIdx.x];
    __syncthreads();
  });
}
void run_spread(const float *host) {
  const int rows = 50;
  DeviceArray<float> in(rows * 32), out(rows * 32);
  in.upload(host);
  spread<<<1, dim3(32, 8)>>>(out.data, in.data, rows);
  cudaDeviceSynchronize();
}

// right: the warp waits for itself
template <typename F>
__device__ void for_each_row(int rows, F &&body) {
  for (int r = threadIdx.y; r < rows; r += blockDim.y) std::forward<F>(body)(r);
}
__global__ void spread_by_warps(float *out, const float *in, int rows) {
  __shared__ float line[8][32];
  for_each_row(rows, [&](int r) {
    line[threadIdx.y][threadIdx.x] = in[r * 32 + threadIdx.x];
    __syncwarp();
    out[r * 32 + threadIdx.x] = line[threadIdx.y][31 - threadIdx.x];
    __syncwarp();
  });
}
void run_spread_by_warps(const float *host) {
  const int rows = 50;
  DeviceArray<float> in(rows * 32), out(rows * 32);
  in.upload(host);
  spread_by_warps<<<1, dim3(32, 8)>>>(out.data, in.data, rows);
  cudaDeviceSynchronize();
}

// wrong (barriers): only the pixels inside of the image come to the base's barrier
template <typename Filter>
struct ImageFilter {
  const float *in;
  float *out;
  int width, height;
  __device__ bool inside(int x, int y) const { return x < width && y < height; }
  __device__ void operator()() const {
    __shared__ float tile[16][16];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (inside(x, y)) {
      tile[threadIdx.y][threadIdx.x] = in[y * width + x];
      __syncthreads();
      out[y * width + x] = static_cast<const Filter &>(*this).at(tile, threadIdx.x, threadIdx.y);
    }
  }
};
struct Sharpen : ImageFilter<Sharpen> {
  __device__ float at(const float (&tile)[16][16], int x, int y) const {
    return 2.0f * tile[y][x] - tile[y][x > 0 ? x - 1 : 0];
  }
};
template <typename Filter>
__global__ void filtered(Filter filter) {
  filter();
}
void run_filtered(const float *host) {
  const int width = 100, height = 50;
  DeviceArray<float> in(width * height), out(width * height);
  in.upload(host);
  Sharpen filter{{in.data, out.data, width, height}};
  filtered<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(filter);
  cudaDeviceSynchronize();
}

// right: they wait with the others
template <typename Filter>
struct WholeFilter {
  const float *in;
  float *out;
  int width, height;
  __device__ bool inside(int x, int y) const { return x < width && y < height; }
  __device__ void operator()() const {
    __shared__ float tile[16][16];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (inside(x, y)) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    if (inside(x, y)) out[y * width + x] = static_cast<const Filter &>(*this).at(tile, threadIdx.x, threadIdx.y);
  }
};
struct SharpenWhole : WholeFilter<SharpenWhole> {
  __device__ float at(const float (&tile)[16][16], int x, int y) const {
    return 2.0f * tile[y][x] - tile[y][x > 0 ? x - 1 : 0];
  }
};
template <typename Filter>
__global__ void filtered_whole(Filter filter) {
  filter();
}
void run_filtered_whole(const float *host) {
  const int width = 100, height = 50;
  DeviceArray<float> in(width * height), out(width * height);
  in.upload(host);
  SharpenWhole filter{{in.data, out.data, width, height}};
  filtered_whole<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(filter);
  cudaDeviceSynchronize();
}

// wrong (barriers): the barrier of the consumers expects the producer's warp too, which only signals the other one
__global__ void produced(float *out, const float *in, int tiles) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(Barrier) char room[2 * sizeof(Barrier)];
  __shared__ float tile[96];
  Barrier *full = reinterpret_cast<Barrier *>(room), *empty = full + 1;
  if (threadIdx.x == 0) {
    init(full, blockDim.x);
    init(empty, blockDim.x);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int t = 0; t < tiles; ++t) {
      if (t > 0) empty->arrive_and_wait();
      for (int k = threadIdx.x; k < 96; k += 32) tile[k] = in[t * 96 + k];
      (void)full->arrive();
    }
  } else {
    float sum = 0.0f;
    for (int t = 0; t < tiles; ++t) {
      full->arrive_and_wait();
      sum += tile[(threadIdx.x * 5) % 96];
    }
    out[threadIdx.x - 32] = sum;
  }
}
void run_produced(const float *host) {
  const int tiles = 6;
  DeviceArray<float> in(tiles * 96), out(96);
  in.upload(host);
  produced<<<1, 128>>>(out.data, in.data, tiles);
  cudaDeviceSynchronize();
}

// right: the consumers signal that they have read
__global__ void produced_in_turn(float *out, const float *in, int tiles) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(Barrier) char room[2 * sizeof(Barrier)];
  __shared__ float tile[96];
  Barrier *full = reinterpret_cast<Barrier *>(room), *empty = full + 1;
  if (threadIdx.x == 0) {
    init(full, blockDim.x);
    init(empty, blockDim.x);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int t = 0; t < tiles; ++t) {
      if (t > 0) empty->arrive_and_wait();
      for (int k = threadIdx.x; k < 96; k += 32) tile[k] = in[t * 96 + k];
      (void)full->arrive();
    }
  } else {
    float sum = 0.0f;
    for (int t = 0; t < tiles; ++t) {
      full->arrive_and_wait();
      sum += tile[(threadIdx.x * 5) % 96];
      (void)empty->arrive();
    }
    out[threadIdx.x - 32] = sum;
  }
}
void run_produced_in_turn(const float *host) {
  const int tiles = 6;
  DeviceArray<float> in(tiles * 96), out(96);
  in.upload(host);
  produced_in_turn<<<1, 128>>>(out.data, in.data, tiles);
  cudaDeviceSynchronize();
}
