// Races in the styles of larger programs: pipelines, warps with roles, tiles that are structs, macros, groups, tickets.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

constexpr int kThreads = 128;
constexpr int kTiles = 8;

static float *on_device(const float *host, size_t n) {
  float *x;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  return x;
}

// wrong (races): each thread waits for its own copies and reads those of others
__global__ void reversed_tiles(float *out, const float *in) {
  __shared__ float buffer[2][kThreads];
  const int t = threadIdx.x;
  const float *mine = in + blockIdx.x * kTiles * kThreads;
  __pipeline_memcpy_async(&buffer[0][t], mine + t, sizeof(float));
  __pipeline_commit();
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + 1 < kTiles)
      __pipeline_memcpy_async(&buffer[(tile + 1) & 1][t], mine + (tile + 1) * kThreads + t, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    out[(blockIdx.x * kTiles + tile) * kThreads + t] = buffer[tile & 1][kThreads - 1 - t];
    __syncthreads();
  }
}
void run_reversed_tiles(const float *host) {
  float *in = on_device(host, 4 * kTiles * kThreads), *out;
  cudaMalloc(&out, 4 * kTiles * kThreads * sizeof(float));
  reversed_tiles<<<4, kThreads>>>(out, in);
}

// right: all wait for all copies
__global__ void reversed_tiles_waiting(float *out, const float *in) {
  __shared__ float buffer[2][kThreads];
  const int t = threadIdx.x;
  const float *mine = in + blockIdx.x * kTiles * kThreads;
  __pipeline_memcpy_async(&buffer[0][t], mine + t, sizeof(float));
  __pipeline_commit();
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + 1 < kTiles)
      __pipeline_memcpy_async(&buffer[(tile + 1) & 1][t], mine + (tile + 1) * kThreads + t, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[(blockIdx.x * kTiles + tile) * kThreads + t] = buffer[tile & 1][kThreads - 1 - t];
    __syncthreads();
  }
}
void run_reversed_tiles_waiting(const float *host) {
  float *in = on_device(host, 4 * kTiles * kThreads), *out;
  cudaMalloc(&out, 4 * kTiles * kThreads * sizeof(float));
  reversed_tiles_waiting<<<4, kThreads>>>(out, in);
}

// wrong (races): the loading warp refills the buffer while the others may still read it
__global__ void two_roles(float *out, const float *in, int tiles) {
  __shared__ float stage[64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int tile = 0; tile < tiles; ++tile) {
      stage[lane] = in[tile * 64 + lane];
      stage[lane + 32] = in[tile * 64 + lane + 32];
      asm volatile("bar.sync 1, 96;" ::: "memory");
    }
  } else {
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
      asm volatile("bar.sync 1, 96;" ::: "memory");
      sum += stage[(threadIdx.x * 3) & 63];
    }
    out[threadIdx.x - 32] = sum;
  }
}
void run_two_roles(const float *host) {
  float *in = on_device(host, 64 * 6), *out;
  cudaMalloc(&out, 64 * sizeof(float));
  two_roles<<<1, 96>>>(out, in, 6);
}

// right: it waits until they have read
__global__ void two_roles_in_turn(float *out, const float *in, int tiles) {
  __shared__ float stage[64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int tile = 0; tile < tiles; ++tile) {
      stage[lane] = in[tile * 64 + lane];
      stage[lane + 32] = in[tile * 64 + lane + 32];
      asm volatile("bar.sync 1, 96;" ::: "memory");
      asm volatile("bar.sync 2, 96;" ::: "memory");
    }
  } else {
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
      asm volatile("bar.sync 1, 96;" ::: "memory");
      sum += stage[(threadIdx.x * 3) & 63];
      asm volatile("bar.sync 2, 96;" ::: "memory");
    }
    out[threadIdx.x - 32] = sum;
  }
}
void run_two_roles_in_turn(const float *host) {
  float *in = on_device(host, 64 * 6), *out;
  cudaMalloc(&out, 64 * sizeof(float));
  two_roles_in_turn<<<1, 96>>>(out, in, 6);
}

// wrong (races): the halves of a warp are added up with nothing between the steps
template <unsigned BLOCK>
__device__ void add_last_warp(float *s, unsigned t) {
  if (BLOCK >= 64) s[t] += s[t + 32];
  if (BLOCK >= 32) s[t] += s[t + 16];
  if (BLOCK >= 16) s[t] += s[t + 8];
  s[t] += s[t + 4];
  s[t] += s[t + 2];
  s[t] += s[t + 1];
}
template <unsigned BLOCK>
__global__ void block_total(float *out, const float *in) {
  __shared__ float s[BLOCK + 32];
  const unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * BLOCK + t];
  if (t < 32) s[BLOCK + t] = 0.0f;
  __syncthreads();
  if (BLOCK >= 128) {
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
  }
  if (t < 32) add_last_warp<BLOCK>(s, t);
  if (t == 0) out[blockIdx.x] = s[0];
}
void run_block_total(const float *host) {
  float *in = on_device(host, 4 * kThreads), *out;
  cudaMalloc(&out, 4 * sizeof(float));
  block_total<kThreads><<<4, kThreads>>>(out, in);
}

// right: each step reads, waits, writes and waits
template <unsigned BLOCK>
__device__ void add_last_warp_in_steps(float *s, unsigned t) {
#pragma unroll
  for (unsigned reach = 32; reach > 0; reach >>= 1) {
    float other = s[t + reach];
    __syncwarp();
    s[t] += other;
    __syncwarp();
  }
}
template <unsigned BLOCK>
__global__ void block_total_in_steps(float *out, const float *in) {
  __shared__ float s[BLOCK + 32];
  const unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * BLOCK + t];
  if (t < 32) s[BLOCK + t] = 0.0f;
  __syncthreads();
  if (BLOCK >= 128) {
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
  }
  if (t < 32) add_last_warp_in_steps<BLOCK>(s, t);
  if (t == 0) out[blockIdx.x] = s[0];
}
void run_block_total_in_steps(const float *host) {
  float *in = on_device(host, 4 * kThreads), *out;
  cudaMalloc(&out, 4 * sizeof(float));
  block_total_in_steps<kThreads><<<4, kThreads>>>(out, in);
}

// wrong (races): lanes of a tile of sixteen read what their neighbours store
__global__ void neighbours_of_sixteen(float *x) {
  __shared__ float row[kThreads];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float *mine = row + tile.meta_group_rank() * 16;
  mine[tile.thread_rank()] = x[blockIdx.x * kThreads + block.thread_rank()];
  float left = mine[(tile.thread_rank() + 15) % 16];
  x[blockIdx.x * kThreads + block.thread_rank()] = left;
}
void run_neighbours_of_sixteen(const float *host) {
  float *x = on_device(host, 2 * kThreads);
  neighbours_of_sixteen<<<2, kThreads>>>(x);
}

// right: the tile waits
__global__ void neighbours_of_sixteen_waiting(float *x) {
  __shared__ float row[kThreads];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float *mine = row + tile.meta_group_rank() * 16;
  mine[tile.thread_rank()] = x[blockIdx.x * kThreads + block.thread_rank()];
  tile.sync();
  float left = mine[(tile.thread_rank() + 15) % 16];
  x[blockIdx.x * kThreads + block.thread_rank()] = left;
}
void run_neighbours_of_sixteen_waiting(const float *host) {
  float *x = on_device(host, 2 * kThreads);
  neighbours_of_sixteen_waiting<<<2, kThreads>>>(x);
}

// wrong (races): the macro that waits is empty unless the program is debugged
#ifdef CAREFUL
#define WAIT_FOR_TILE() __syncthreads()
#else
#define WAIT_FOR_TILE()
#endif
#define TILE_AT(r, c) tile[(r) * 33 + (c)]
__global__ void turned(float *out, const float *in, int n) {
  __shared__ float tile[32 * 33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) TILE_AT(threadIdx.y + k, threadIdx.x) = in[(r + k) * n + c];
  WAIT_FOR_TILE();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) out[(r + k) * n + c] = TILE_AT(threadIdx.x, threadIdx.y + k);
}
void run_turned(const float *host) {
  float *in = on_device(host, 64 * 64), *out;
  cudaMalloc(&out, 64 * 64 * sizeof(float));
  turned<<<dim3(2, 2), dim3(32, 8)>>>(out, in, 64);
}

// right: it always waits
#define ALWAYS_WAIT_FOR_TILE() __syncthreads()
#define TILE_OF(r, c) tile[(r) * 33 + (c)]
__global__ void turned_waiting(float *out, const float *in, int n) {
  __shared__ float tile[32 * 33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) TILE_OF(threadIdx.y + k, threadIdx.x) = in[(r + k) * n + c];
  ALWAYS_WAIT_FOR_TILE();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) out[(r + k) * n + c] = TILE_OF(threadIdx.x, threadIdx.y + k);
}
void run_turned_waiting(const float *host) {
  float *in = on_device(host, 64 * 64), *out;
  cudaMalloc(&out, 64 * 64 * sizeof(float));
  turned_waiting<<<dim3(2, 2), dim3(32, 8)>>>(out, in, 64);
}

// wrong (races): blocks take their tickets without an atomic
__global__ void sum_by_last(float *total, float *parts, unsigned *tickets, const float *in) {
  __shared__ bool last;
  float v = in[blockIdx.x * 32 + threadIdx.x];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = v;
    __threadfence();
    unsigned ticket = tickets[0]++;
    last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += ((volatile float *)parts)[b];
    *total = sum;
  }
}
void run_sum_by_last(const float *host) {
  float *in = on_device(host, 16 * 32), *parts, *total;
  unsigned *tickets;
  cudaMalloc(&parts, 16 * sizeof(float));
  cudaMalloc(&total, sizeof(float));
  cudaMalloc(&tickets, sizeof(unsigned));
  cudaMemset(tickets, 0, sizeof(unsigned));
  sum_by_last<<<16, 32>>>(total, parts, tickets, in);
}

// right: by an atomic
__global__ void sum_by_atomic_last(float *total, float *parts, unsigned *tickets, const float *in) {
  __shared__ bool last;
  float v = in[blockIdx.x * 32 + threadIdx.x];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = v;
    __threadfence();
    unsigned ticket = atomicAdd(tickets, 1u);
    last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += ((volatile float *)parts)[b];
    *total = sum;
  }
}
void run_sum_by_atomic_last(const float *host) {
  float *in = on_device(host, 16 * 32), *parts, *total;
  unsigned *tickets;
  cudaMalloc(&parts, 16 * sizeof(float));
  cudaMalloc(&total, sizeof(float));
  cudaMalloc(&tickets, sizeof(unsigned));
  cudaMemset(tickets, 0, sizeof(unsigned));
  sum_by_atomic_last<<<16, 32>>>(total, parts, tickets, in);
}

// wrong (races): a tile with methods is summed by columns before all rows are there
template <int ROWS, int COLUMNS>
struct Tile {
  float v[ROWS][COLUMNS + 1];
  __device__ void load(const float *from, int pitch) {
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x)
      v[i / COLUMNS][i % COLUMNS] = from[i / COLUMNS * pitch + i % COLUMNS];
  }
  __device__ float column(int c) const {
    float sum = 0.0f;
    for (int r = 0; r < ROWS; ++r) sum += v[r][c];
    return sum;
  }
};
__global__ void columns(float *out, const float *in) {
  __shared__ Tile<16, 64> tile;
  tile.load(in + blockIdx.x * 64, 64 * gridDim.x);
  if (threadIdx.x < 64) out[blockIdx.x * 64 + threadIdx.x] = tile.column(threadIdx.x);
}
void run_columns(const float *host) {
  float *in = on_device(host, 16 * 64 * 4), *out;
  cudaMalloc(&out, 64 * 4 * sizeof(float));
  columns<<<4, 128>>>(out, in);
}

// right: when all are
template <int ROWS, int COLUMNS>
struct SharedTile {
  float v[ROWS][COLUMNS + 1];
  __device__ void load(const float *from, int pitch) {
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x)
      v[i / COLUMNS][i % COLUMNS] = from[i / COLUMNS * pitch + i % COLUMNS];
    __syncthreads();
  }
  __device__ float column(int c) const {
    float sum = 0.0f;
    for (int r = 0; r < ROWS; ++r) sum += v[r][c];
    return sum;
  }
};
__global__ void columns_waiting(float *out, const float *in) {
  __shared__ SharedTile<16, 64> tile;
  tile.load(in + blockIdx.x * 64, 64 * gridDim.x);
  if (threadIdx.x < 64) out[blockIdx.x * 64 + threadIdx.x] = tile.column(threadIdx.x);
}
void run_columns_waiting(const float *host) {
  float *in = on_device(host, 16 * 64 * 4), *out;
  cudaMalloc(&out, 64 * 4 * sizeof(float));
  columns_waiting<<<4, 128>>>(out, in);
}

// wrong (races): the first block adds up what the others are still counting
__global__ void level_counts(unsigned *counts, unsigned *total, const unsigned char *in) {
  __shared__ unsigned mine[64];
  if (threadIdx.x < 64) mine[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&mine[in[blockIdx.x * blockDim.x + threadIdx.x] >> 2], 1u);
  __syncthreads();
  if (threadIdx.x < 64) counts[blockIdx.x * 64 + threadIdx.x] = mine[threadIdx.x];
  if (blockIdx.x == 0 && threadIdx.x < 64) {
    unsigned sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += counts[b * 64 + threadIdx.x];
    total[threadIdx.x] = sum;
  }
}
void run_level_counts(const unsigned char *host) {
  unsigned char *in;
  unsigned *counts, *total;
  cudaMalloc(&in, 8 * 128);
  cudaMalloc(&counts, 8 * 64 * sizeof(unsigned));
  cudaMalloc(&total, 64 * sizeof(unsigned));
  cudaMemcpy(in, host, 8 * 128, cudaMemcpyHostToDevice);
  level_counts<<<8, 128>>>(counts, total, in);
}

// right: a barrier of the grid between
__global__ void level_counts_in_turn(unsigned *counts, unsigned *total, const unsigned char *in) {
  __shared__ unsigned mine[64];
  if (threadIdx.x < 64) mine[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&mine[in[blockIdx.x * blockDim.x + threadIdx.x] >> 2], 1u);
  __syncthreads();
  if (threadIdx.x < 64) counts[blockIdx.x * 64 + threadIdx.x] = mine[threadIdx.x];
  cg::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x < 64) {
    unsigned sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += counts[b * 64 + threadIdx.x];
    total[threadIdx.x] = sum;
  }
}
void run_level_counts_in_turn(const unsigned char *host) {
  unsigned char *in;
  unsigned *counts, *total;
  cudaMalloc(&in, 8 * 128);
  cudaMalloc(&counts, 8 * 64 * sizeof(unsigned));
  cudaMalloc(&total, 64 * sizeof(unsigned));
  cudaMemcpy(in, host, 8 * 128, cudaMemcpyHostToDevice);
  void *arguments[] = {&counts, &total, &in};
  cudaLaunchCooperativeKernel((void *)level_counts_in_turn, 8, 128, arguments, 0, 0);
}

// wrong (races): a thread reads the best of the block while others still raise it
__global__ void where_is_the_largest(int *best, int *where, const int *x) {
  __shared__ int largest;
  if (threadIdx.x == 0) largest = INT_MIN;
  __syncthreads();
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicMax(&largest, v);
  if (v == largest) where[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (threadIdx.x == 0) best[blockIdx.x] = 0;
}
void run_where_is_the_largest(const int *host) {
  int *x, *best, *where;
  cudaMalloc(&x, 1024 * sizeof(int));
  cudaMalloc(&where, 1024 * sizeof(int));
  cudaMalloc(&best, 4 * sizeof(int));
  cudaMemset(where, 0, 1024 * sizeof(int));
  cudaMemcpy(x, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  where_is_the_largest<<<4, 256>>>(best, where, x);
}

// right: when all have raised it
__global__ void where_is_the_largest_of_all(int *best, int *where, const int *x) {
  __shared__ int largest;
  if (threadIdx.x == 0) largest = INT_MIN;
  __syncthreads();
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicMax(&largest, v);
  __syncthreads();
  if (v == largest) where[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (threadIdx.x == 0) best[blockIdx.x] = largest;
}
void run_where_is_the_largest_of_all(const int *host) {
  int *x, *best, *where;
  cudaMalloc(&x, 1024 * sizeof(int));
  cudaMalloc(&where, 1024 * sizeof(int));
  cudaMalloc(&best, 4 * sizeof(int));
  cudaMemset(where, 0, 1024 * sizeof(int));
  cudaMemcpy(x, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  where_is_the_largest_of_all<<<4, 256>>>(best, where, x);
}

// wrong (races): a thread reads between its arrival and the end of its wait
__global__ void early_reader(float *out, const float *in) {
  __shared__ float s[kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  s[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  auto token = ready.arrive();
  float v = s[kThreads - 1 - threadIdx.x];
  ready.wait(std::move(token));
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
void run_early_reader(const float *host) {
  float *in = on_device(host, 2 * kThreads), *out;
  cudaMalloc(&out, 2 * kThreads * sizeof(float));
  early_reader<<<2, kThreads>>>(out, in);
}

// right: behind it
__global__ void patient_reader(float *out, const float *in) {
  __shared__ float s[kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  s[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  auto token = ready.arrive();
  ready.wait(std::move(token));
  float v = s[kThreads - 1 - threadIdx.x];
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
void run_patient_reader(const float *host) {
  float *in = on_device(host, 2 * kThreads), *out;
  cudaMalloc(&out, 2 * kThreads * sizeof(float));
  patient_reader<<<2, kThreads>>>(out, in);
}
