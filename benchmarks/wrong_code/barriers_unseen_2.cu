// Barriers in the styles of larger programs: warps with roles, named barriers in templates, clusters, groups, macros.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

static float *on_device(const float *host, size_t n) {
  float *x;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  return x;
}
template <int ID, int COUNT>
__device__ __forceinline__ void wait_for() {
  asm volatile("bar.sync %0, %1;" : : "n"(ID), "n"(COUNT) : "memory");
}

// wrong (barriers): the loader makes one turn more than those who use what it loads
__global__ void loader_and_users(float *out, const float *in, int tiles) {
  __shared__ float stage[2][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int t = 0; t <= tiles; ++t) {
      stage[t & 1][lane] = in[(t % tiles) * 32 + lane];
      asm volatile("bar.sync 1, 128;" ::: "memory");
    }
  } else {
    float sum = 0.0f;
    for (int t = 0; t < tiles; ++t) {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      sum += stage[t & 1][31 - lane];
    }
    out[threadIdx.x - 32] = sum;
  }
}
void run_loader_and_users(const float *host) {
  float *in = on_device(host, 32 * 4), *out;
  cudaMalloc(&out, 96 * sizeof(float));
  loader_and_users<<<1, 128>>>(out, in, 4);
}

// right: as many
__global__ void loader_and_users_together(float *out, const float *in, int tiles) {
  __shared__ float stage[2][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int t = 0; t < tiles; ++t) {
      stage[t & 1][lane] = in[t * 32 + lane];
      asm volatile("bar.sync 1, 128;" ::: "memory");
      asm volatile("bar.sync 2, 128;" ::: "memory");
    }
  } else {
    float sum = 0.0f;
    for (int t = 0; t < tiles; ++t) {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      sum += stage[t & 1][31 - lane];
      asm volatile("bar.sync 2, 128;" ::: "memory");
    }
    out[threadIdx.x - 32] = sum;
  }
}
void run_loader_and_users_together(const float *host) {
  float *in = on_device(host, 32 * 4), *out;
  cudaMalloc(&out, 96 * sizeof(float));
  loader_and_users_together<<<1, 128>>>(out, in, 4);
}

// wrong (barriers): a named barrier counts the whole block, and three of its four warps come
__global__ void three_warps(float *x) {
  __shared__ float s[128];
  int i = threadIdx.x;
  s[i] = x[i];
  if (i >= 32) {
    wait_for<3, 128>();
    x[i] = s[i - 1 < 32 ? 127 : i - 1];
  }
}
void run_three_warps(const float *host) {
  float *x = on_device(host, 128);
  three_warps<<<1, 128>>>(x);
}

// right: it counts those who come
__global__ void three_warps_counted(float *x) {
  __shared__ float s[128];
  int i = threadIdx.x;
  s[i] = x[i];
  if (i >= 32) {
    wait_for<3, 96>();
    x[i] = s[i - 1 < 32 ? 127 : i - 1];
  }
}
void run_three_warps_counted(const float *host) {
  float *x = on_device(host, 128);
  three_warps_counted<<<1, 128>>>(x);
}

// wrong (barriers): the cluster's first block waits once more than the second
__global__ void __cluster_dims__(2, 1, 1) sum_of_two_blocks(float *out, const float *in) {
  __shared__ float part;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) part = in[blockIdx.x];
  if (cluster.block_rank() == 0) {
    cluster.sync();
    if (threadIdx.x == 0) out[blockIdx.x / 2] = part + *cluster.map_shared_rank(&part, 1);
  }
  cluster.sync();
}
void run_sum_of_two_blocks(const float *host) {
  float *in = on_device(host, 8), *out;
  cudaMalloc(&out, 4 * sizeof(float));
  sum_of_two_blocks<<<8, 64>>>(out, in);
}

// right: both wait twice
__global__ void __cluster_dims__(2, 1, 1) sum_of_two_waiting_blocks(float *out, const float *in) {
  __shared__ float part;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) part = in[blockIdx.x];
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0)
    out[blockIdx.x / 2] = part + *cluster.map_shared_rank(&part, 1);
  cluster.sync();
}
void run_sum_of_two_waiting_blocks(const float *host) {
  float *in = on_device(host, 8), *out;
  cudaMalloc(&out, 4 * sizeof(float));
  sum_of_two_waiting_blocks<<<8, 64>>>(out, in);
}

// wrong (barriers): all lanes name the lower half of the warp as those who come
__global__ void lower_half(float *x) {
  float v = x[blockIdx.x * 64 + threadIdx.x];
  const unsigned mask = (1u << 16) - 1;
  for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(mask, v, d, 16);
  x[blockIdx.x * 64 + threadIdx.x] = v;
}
void run_lower_half(const float *host) {
  float *x = on_device(host, 256);
  lower_half<<<4, 64>>>(x);
}

// right: each half names itself
__global__ void own_half(float *x) {
  float v = x[blockIdx.x * 64 + threadIdx.x];
  const unsigned mask = threadIdx.x & 16 ? 0xffff0000u : 0x0000ffffu;
  for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(mask, v, d, 16);
  x[blockIdx.x * 64 + threadIdx.x] = v;
}
void run_own_half(const float *host) {
  float *x = on_device(host, 256);
  own_half<<<4, 64>>>(x);
}

// wrong (barriers): lanes shuffle as often as their own rows are long
__global__ void rows_of_lanes(float *y, const int *starts, const float *values, int rows) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int e = starts[row]; e < starts[row + 1]; ++e) {
    sum += values[e];
    sum += 0.125f * warp.shfl_xor(sum, 1);
  }
  y[row] = sum;
}
void run_rows_of_lanes(const int *host_starts, const float *host) {
  int *starts;
  float *values = on_device(host, 1000), *y;
  cudaMalloc(&starts, 65 * sizeof(int));
  cudaMemcpy(starts, host_starts, 65 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMalloc(&y, 64 * sizeof(float));
  rows_of_lanes<<<1, 64>>>(y, starts, values, 64);
}

// right: all lanes of a warp have one row
__global__ void rows_of_warps(float *y, const int *starts, const float *values, int rows) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float sum = 0.0f;
  for (int e = starts[row]; e < starts[row + 1]; e += 32) {
    float v = e + (int)warp.thread_rank() < starts[row + 1] ? values[e + warp.thread_rank()] : 0.0f;
    for (int d = 16; d; d >>= 1) v += warp.shfl_xor(v, d);
    sum += v;
  }
  if (warp.thread_rank() == 0) y[row] = sum;
}
void run_rows_of_warps(const int *host_starts, const float *host) {
  int *starts;
  float *values = on_device(host, 1000), *y;
  cudaMalloc(&starts, 65 * sizeof(int));
  cudaMemcpy(starts, host_starts, 65 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMalloc(&y, 64 * sizeof(float));
  rows_of_warps<<<32, 64>>>(y, starts, values, 64);
}

// wrong (barriers): the loop that a macro opens ends earlier for the last threads, and the group waits in it
#define FOR_OWN(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)
__global__ void smoothed(float *out, const float *in, int n) {
  __shared__ float s[256];
  cg::thread_block block = cg::this_thread_block();
  float sum = 0.0f;
  FOR_OWN(i, n) {
    s[threadIdx.x] = in[i];
    cg::sync(block);
    sum += s[threadIdx.x] + s[threadIdx.x ^ 1];
    cg::sync(block);
  }
  s[threadIdx.x] = sum;
  cg::sync(block);
  out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
void run_smoothed(const float *host) {
  float *in = on_device(host, 1000), *out;
  cudaMalloc(&out, 512 * sizeof(float));
  smoothed<<<2, 256>>>(out, in, 1000);
}

// right: all threads of a block make its turns
#define FOR_BLOCKS(first, n) for (int first = blockIdx.x * blockDim.x; first < (n); first += gridDim.x * blockDim.x)
__global__ void smoothed_by_all(float *out, const float *in, int n) {
  __shared__ float s[256];
  cg::thread_block block = cg::this_thread_block();
  float sum = 0.0f;
  FOR_BLOCKS(first, n) {
    s[threadIdx.x] = first + threadIdx.x < n ? in[first + threadIdx.x] : 0.0f;
    cg::sync(block);
    sum += s[threadIdx.x] + s[threadIdx.x ^ 1];
    cg::sync(block);
  }
  s[threadIdx.x] = sum;
  cg::sync(block);
  out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
void run_smoothed_by_all(const float *host) {
  float *in = on_device(host, 1000), *out;
  cudaMalloc(&out, 512 * sizeof(float));
  smoothed_by_all<<<2, 256>>>(out, in, 1000);
}

// wrong (barriers): a barrier in shared memory waits for the block, and half of it arrives
__global__ void half_arrives(float *x) {
  __shared__ float s[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  if (threadIdx.x < 64) {
    s[threadIdx.x] = x[threadIdx.x];
    ready.arrive_and_wait();
    x[threadIdx.x] = s[63 - threadIdx.x];
  }
}
void run_half_arrives(const float *host) {
  float *x = on_device(host, 128);
  half_arrives<<<1, 128>>>(x);
}

// right: it waits for half of it
__global__ void half_is_awaited(float *x) {
  __shared__ float s[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x / 2);
  __syncthreads();
  if (threadIdx.x < 64) {
    s[threadIdx.x] = x[threadIdx.x];
    ready.arrive_and_wait();
    x[threadIdx.x] = s[63 - threadIdx.x];
  }
}
void run_half_is_awaited(const float *host) {
  float *x = on_device(host, 128);
  half_is_awaited<<<1, 128>>>(x);
}

// wrong (barriers): the first thread spins for a flag that another sets behind the barrier
__global__ void flag_behind_barrier(float *out, const float *in) {
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0)
    while (!ready) {
    }
  __syncthreads();
  if (threadIdx.x == 32) ready = 1;
  out[threadIdx.x] = in[63 - threadIdx.x];
}
void run_flag_behind_barrier(const float *host) {
  float *in = on_device(host, 64), *out;
  cudaMalloc(&out, 64 * sizeof(float));
  flag_behind_barrier<<<1, 64>>>(out, in);
}

// right: it sets it first
__global__ void flag_before_barrier(float *out, const float *in) {
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 32) atomicExch(&ready, 1);
  if (threadIdx.x == 0)
    while (!atomicAdd(&ready, 0)) {
    }
  __syncthreads();
  out[threadIdx.x] = in[63 - threadIdx.x];
}
void run_flag_before_barrier(const float *host) {
  float *in = on_device(host, 64), *out;
  cudaMalloc(&out, 64 * sizeof(float));
  flag_before_barrier<<<1, 64>>>(out, in);
}

// wrong (barriers): threads beyond the volume do not come to the barriers of the slices
struct Volume {
  float *cells;
  int3 size;
};
__global__ void slices(Volume v, float *out) {
  __shared__ float s[8][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < v.size.x && y < v.size.y) {
    float sum = 0.0f;
    for (int z = 0; z < v.size.z; ++z) {
      s[threadIdx.y][threadIdx.x] = v.cells[(z * v.size.y + y) * v.size.x + x];
      __syncthreads();
      sum += s[threadIdx.y][threadIdx.x ^ 1];
      __syncthreads();
    }
    out[y * v.size.x + x] = sum;
  }
}
void run_slices(const float *host) {
  Volume v{on_device(host, 40 * 20 * 5), make_int3(40, 20, 5)};
  float *out;
  cudaMalloc(&out, 40 * 20 * sizeof(float));
  slices<<<dim3(2, 3), dim3(32, 8)>>>(v, out);
}

// right: they stay and store nothing
struct Box {
  float *cells;
  int3 size;
};
__global__ void slices_by_all(Box v, float *out) {
  __shared__ float s[8][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  bool inside = x < v.size.x && y < v.size.y;
  float sum = 0.0f;
  for (int z = 0; z < v.size.z; ++z) {
    s[threadIdx.y][threadIdx.x] = inside ? v.cells[(z * v.size.y + y) * v.size.x + x] : 0.0f;
    __syncthreads();
    sum += s[threadIdx.y][threadIdx.x ^ 1];
    __syncthreads();
  }
  if (inside) out[y * v.size.x + x] = sum;
}
void run_slices_by_all(const float *host) {
  Box v{on_device(host, 40 * 20 * 5), make_int3(40, 20, 5)};
  float *out;
  cudaMalloc(&out, 40 * 20 * sizeof(float));
  slices_by_all<<<dim3(2, 3), dim3(32, 8)>>>(v, out);
}

// wrong (barriers): the grid's barrier waits for blocks that found their work done
__global__ void rounds(int *frontier, int *next, int *left, int n) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank();
  for (int round = 0; round < 4; ++round) {
    int mine = i < n ? frontier[i] : 0;
    if (__syncthreads_count(mine) == 0) break;
    if (i < n) next[i] = mine - 1;
    grid.sync();
    if (i < n) frontier[i] = next[i] > 0;
    grid.sync();
  }
}
void run_rounds(const int *host, int *left) {
  int *frontier, *next, n = 256;
  cudaMalloc(&frontier, n * sizeof(int));
  cudaMalloc(&next, n * sizeof(int));
  cudaMemcpy(frontier, host, n * sizeof(int), cudaMemcpyHostToDevice);
  void *arguments[] = {&frontier, &next, &left, &n};
  cudaLaunchCooperativeKernel((void *)rounds, dim3(4), dim3(64), arguments, 0, 0);
}

// right: all blocks make all rounds
__global__ void all_rounds(int *frontier, int *next, int *left, int n) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank();
  for (int round = 0; round < 4; ++round) {
    int mine = i < n ? frontier[i] : 0;
    if (i < n) next[i] = mine - 1;
    grid.sync();
    if (i < n) frontier[i] = next[i] > 0;
    grid.sync();
  }
}
void run_all_rounds(const int *host, int *left) {
  int *frontier, *next, n = 256;
  cudaMalloc(&frontier, n * sizeof(int));
  cudaMalloc(&next, n * sizeof(int));
  cudaMemcpy(frontier, host, n * sizeof(int), cudaMemcpyHostToDevice);
  void *arguments[] = {&frontier, &next, &left, &n};
  cudaLaunchCooperativeKernel((void *)all_rounds, dim3(4), dim3(64), arguments, 0, 0);
}
