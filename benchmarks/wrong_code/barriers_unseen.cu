// Barriers and waits in styles that the rules were not written by: conditions that call, loops that go on by data, spins.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

// wrong (barriers): each thread decides by its own error whether it goes round again
__global__ void settle(float *x) {
  __shared__ float s[128];
  float v = x[blockIdx.x * 128 + threadIdx.x], change;
  do {
    s[threadIdx.x] = v;
    __syncthreads();
    float next = 0.5f * (s[threadIdx.x] + s[(threadIdx.x + 1) & 127]);
    __syncthreads();
    change = fabsf(next - v);
    v = next;
  } while (change > 1e-3f);
  x[blockIdx.x * 128 + threadIdx.x] = v;
}
void run_settle(const float *host) {
  float *x;
  cudaMalloc(&x, 512 * sizeof(float));
  cudaMemcpy(x, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  settle<<<4, 128>>>(x);
}

// right: all go on as long as one has to
__global__ void settle_together(float *x) {
  __shared__ float s[128];
  float v = x[blockIdx.x * 128 + threadIdx.x], change;
  do {
    s[threadIdx.x] = v;
    __syncthreads();
    float next = 0.5f * (s[threadIdx.x] + s[(threadIdx.x + 1) & 127]);
    __syncthreads();
    change = fabsf(next - v);
    v = next;
  } while (__syncthreads_or(change > 1e-3f));
  x[blockIdx.x * 128 + threadIdx.x] = v;
}
void run_settle_together(const float *host) {
  float *x;
  cudaMalloc(&x, 512 * sizeof(float));
  cudaMemcpy(x, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  settle_together<<<4, 128>>>(x);
}

// wrong (barriers): blocks make different numbers of turns around the grid's barrier
__global__ void sweep(float *x, int tiles) {
  cg::grid_group grid = cg::this_grid();
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    x[tile * blockDim.x + threadIdx.x] *= 0.5f;
    grid.sync();
  }
}
void run_sweep(const float *host) {
  float *x;
  int tiles = 10;
  cudaMalloc(&x, 640 * sizeof(float));
  cudaMemcpy(x, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  void *arguments[] = {&x, &tiles};
  cudaLaunchCooperativeKernel((void *)sweep, dim3(4), dim3(64), arguments, 0, 0);
}

// right: the same number for all
__global__ void sweep_in_rounds(float *x, int tiles) {
  cg::grid_group grid = cg::this_grid();
  for (int first = 0; first < tiles; first += gridDim.x) {
    int tile = first + blockIdx.x;
    if (tile < tiles) x[tile * blockDim.x + threadIdx.x] *= 0.5f;
    grid.sync();
  }
}
void run_sweep_in_rounds(const float *host) {
  float *x;
  int tiles = 10;
  cudaMalloc(&x, 640 * sizeof(float));
  cudaMemcpy(x, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  void *arguments[] = {&x, &tiles};
  cudaLaunchCooperativeKernel((void *)sweep_in_rounds, dim3(4), dim3(64), arguments, 0, 0);
}

// wrong (barriers): one block of the cluster waits for the other, which does not
__global__ void __cluster_dims__(2, 1, 1) publish(int *out) {
  __shared__ int word;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) word = blockIdx.x;
  if (cluster.block_rank() == 0) cluster.sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x == 0 ? word : 0;
}
void run_publish() {
  int *out;
  cudaMalloc(&out, 512 * sizeof(int));
  publish<<<8, 64>>>(out);
}

// right: both wait
__global__ void __cluster_dims__(2, 1, 1) publish_to_both(int *out) {
  __shared__ int word;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) word = blockIdx.x;
  cluster.sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x == 0 ? word : 0;
}
void run_publish_to_both() {
  int *out;
  cudaMalloc(&out, 512 * sizeof(int));
  publish_to_both<<<8, 64>>>(out);
}

// wrong (barriers): all lanes are to be matched, and those behind the data do not come
__global__ void peers(unsigned *out, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __popc(__match_any_sync(0xffffffffu, keys[i]));
}
void run_peers(const int *host) {
  unsigned *out;
  int *keys;
  cudaMalloc(&out, 200 * sizeof(unsigned));
  cudaMalloc(&keys, 200 * sizeof(int));
  cudaMemcpy(keys, host, 200 * sizeof(int), cudaMemcpyHostToDevice);
  peers<<<2, 128>>>(out, keys, 200);
}

// right: a vote of all tells who comes
__global__ void peers_that_come(unsigned *out, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned come = __ballot_sync(0xffffffffu, i < n);
  if (i < n) out[i] = __popc(__match_any_sync(come, keys[i]));
}
void run_peers_that_come(const int *host) {
  unsigned *out;
  int *keys;
  cudaMalloc(&out, 200 * sizeof(unsigned));
  cudaMalloc(&keys, 200 * sizeof(int));
  cudaMemcpy(keys, host, 200 * sizeof(int), cudaMemcpyHostToDevice);
  peers_that_come<<<2, 128>>>(out, keys, 200);
}

// wrong (barriers): lanes make as many turns as their rows are long, and all are waited for in each
__global__ void row_turns(float *out, const int *start, const float *values) {
  __shared__ float s[32];
  int lane = threadIdx.x;
  float sum = 0.0f;
  for (int j = start[lane]; j < start[lane + 1]; ++j) {
    s[lane] = values[j];
    __syncwarp();
    sum += s[lane ^ 1];
    __syncwarp();
  }
  out[lane] = sum;
}
void run_row_turns(const int *starts, const float *host, int count) {
  float *out, *values;
  int *start;
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMalloc(&start, 33 * sizeof(int));
  cudaMalloc(&values, count * sizeof(float));
  cudaMemcpy(start, starts, 33 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(values, host, count * sizeof(float), cudaMemcpyHostToDevice);
  row_turns<<<1, 32>>>(out, start, values);
}

// right: as many as the warp agrees on
__global__ void row_turns_agreed(float *out, const int *start, const float *values) {
  __shared__ float s[32];
  int lane = threadIdx.x;
  float sum = 0.0f;
  int j = start[lane], end = start[lane + 1];
  while (__any_sync(0xffffffffu, j < end)) {
    s[lane] = j < end ? values[j] : 0.0f;
    __syncwarp();
    sum += s[lane ^ 1];
    __syncwarp();
    ++j;
  }
  out[lane] = sum;
}
void run_row_turns_agreed(const int *starts, const float *host, int count) {
  float *out, *values;
  int *start;
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMalloc(&start, 33 * sizeof(int));
  cudaMalloc(&values, count * sizeof(float));
  cudaMemcpy(start, starts, 33 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(values, host, count * sizeof(float), cudaMemcpyHostToDevice);
  row_turns_agreed<<<1, 32>>>(out, start, values);
}

// wrong (barriers): a named barrier counts 128, and 64 arrive and 32 wait
template <int ID>
__device__ __forceinline__ void named_arrive(int threads) {
  asm volatile("bar.arrive %0, %1;" ::"n"(ID), "r"(threads) : "memory");
}
template <int ID>
__device__ __forceinline__ void named_sync(int threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "r"(threads) : "memory");
}
__global__ void producers(float *out, const float *in) {
  __shared__ float s[64];
  int t = threadIdx.x;
  if (t < 64) {
    s[t] = in[t];
    named_arrive<3>(128);
  } else {
    named_sync<3>(128);
    out[t - 64] = s[t - 64] + 1.0f;
  }
}
void run_producers(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMemcpy(in, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  producers<<<1, 96>>>(out, in);
}

// right: 64 wait
template <int ID>
__device__ __forceinline__ void announce(int threads) {
  asm volatile("bar.arrive %0, %1;" ::"n"(ID), "r"(threads) : "memory");
}
template <int ID>
__device__ __forceinline__ void await(int threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "r"(threads) : "memory");
}
__global__ void producers_of_all(float *out, const float *in) {
  __shared__ float s[64];
  int t = threadIdx.x;
  if (t < 64) {
    s[t] = in[t];
    announce<3>(128);
  } else {
    await<3>(128);
    out[t - 64] = s[t - 64] + 1.0f;
  }
}
void run_producers_of_all(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMemcpy(in, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  producers_of_all<<<1, 128>>>(out, in);
}

// wrong (barriers): a grid's barrier made by hand waits for one block more than there are
__device__ unsigned arrived_late;
__global__ void two_phases(float *x, float *sum) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived_late, 1u);
    while (atomicAdd(&arrived_late, 0u) <= gridDim.x) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) sum[blockIdx.x] = __ldcg(&x[(blockIdx.x + 1) % gridDim.x * blockDim.x]);
}
void run_two_phases(const float *host) {
  float *x, *sum;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMalloc(&sum, 4 * sizeof(float));
  cudaMemcpy(x, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  two_phases<<<4, 64>>>(x, sum);
}

// right: for all that there are
__device__ unsigned arrived;
__global__ void two_phases_of_all(float *x, float *sum) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1u);
    while (atomicAdd(&arrived, 0u) < gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) sum[blockIdx.x] = __ldcg(&x[(blockIdx.x + 1) % gridDim.x * blockDim.x]);
}
void run_two_phases_of_all(const float *host) {
  float *x, *sum;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMalloc(&sum, 4 * sizeof(float));
  cudaMemcpy(x, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  two_phases_of_all<<<4, 64>>>(x, sum);
}

// wrong (barriers): a lock is kept by whoever leaves early
__global__ void locked_sum(int *lock, int *sum, const int *in) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  if ((v & 1) != 0) return;
  atomicAdd(sum, v);
  __threadfence();
  atomicExch(lock, 0);
}
void run_locked_sum(const int *host) {
  int *lock, *sum, *in;
  cudaMalloc(&lock, sizeof(int));
  cudaMalloc(&sum, sizeof(int));
  cudaMalloc(&in, 256 * sizeof(int));
  cudaMemset(lock, 0, sizeof(int));
  cudaMemset(sum, 0, sizeof(int));
  cudaMemcpy(in, host, 256 * sizeof(int), cudaMemcpyHostToDevice);
  locked_sum<<<4, 64>>>(lock, sum, in);
}

// right: who leaves early never takes it
__global__ void locked_sum_of_some(int *lock, int *sum, const int *in) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  if ((v & 1) != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  atomicAdd(sum, v);
  __threadfence();
  atomicExch(lock, 0);
}
void run_locked_sum_of_some(const int *host) {
  int *lock, *sum, *in;
  cudaMalloc(&lock, sizeof(int));
  cudaMalloc(&sum, sizeof(int));
  cudaMalloc(&in, 256 * sizeof(int));
  cudaMemset(lock, 0, sizeof(int));
  cudaMemset(sum, 0, sizeof(int));
  cudaMemcpy(in, host, 256 * sizeof(int), cudaMemcpyHostToDevice);
  locked_sum_of_some<<<4, 64>>>(lock, sum, in);
}

// wrong (barriers): the right side of && is a call that waits
__device__ bool last_is_large(float *s, float v) {
  s[threadIdx.x] = v;
  __syncthreads();
  return s[95] > 0.5f;
}
__global__ void lazily(float *out, const float *in) {
  __shared__ float s[128];
  float v = in[blockIdx.x * 128 + threadIdx.x];
  if (threadIdx.x < 96 && last_is_large(s, v)) v = 1.0f;
  out[blockIdx.x * 128 + threadIdx.x] = v;
}
void run_lazily(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  lazily<<<4, 128>>>(out, in);
}

// right: the left side is
__device__ bool middle_is_large(float *s, float v) {
  s[threadIdx.x] = v;
  __syncthreads();
  return s[95] > 0.5f;
}
__global__ void eagerly(float *out, const float *in) {
  __shared__ float s[128];
  float v = in[blockIdx.x * 128 + threadIdx.x];
  if (middle_is_large(s, v) && threadIdx.x < 96) v = 1.0f;
  out[blockIdx.x * 128 + threadIdx.x] = v;
}
void run_eagerly(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  eagerly<<<4, 128>>>(out, in);
}

// wrong (barriers): a thread whose element is masked continues with the next round, past the group's barrier
__global__ void masked_rounds(float *out, const float *in, const bool *masked) {
  __shared__ float s[64];
  cg::thread_block block = cg::this_thread_block();
  unsigned t = block.thread_rank();
  for (int round = 0; round < 4; ++round) {
    if (masked[round * 64 + t]) continue;
    s[t] = in[round * 64 + t];
    block.sync();
    out[round * 64 + t] = s[t] + 1.0f;
    block.sync();
  }
}
void run_masked_rounds(const float *host, const bool *mask) {
  float *out, *in;
  bool *masked;
  cudaMalloc(&out, 256 * sizeof(float));
  cudaMalloc(&in, 256 * sizeof(float));
  cudaMalloc(&masked, 256 * sizeof(bool));
  cudaMemcpy(in, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(masked, mask, 256 * sizeof(bool), cudaMemcpyHostToDevice);
  masked_rounds<<<1, 64>>>(out, in, masked);
}

// right: the whole round is masked
__global__ void masked_whole_rounds(float *out, const float *in, const bool *masked) {
  __shared__ float s[64];
  cg::thread_block block = cg::this_thread_block();
  unsigned t = block.thread_rank();
  for (int round = 0; round < 4; ++round) {
    if (masked[round]) continue;
    s[t] = in[round * 64 + t];
    block.sync();
    out[round * 64 + t] = s[t] + 1.0f;
    block.sync();
  }
}
void run_masked_whole_rounds(const float *host, const bool *mask) {
  float *out, *in;
  bool *masked;
  cudaMalloc(&out, 256 * sizeof(float));
  cudaMalloc(&in, 256 * sizeof(float));
  cudaMalloc(&masked, 256 * sizeof(bool));
  cudaMemcpy(in, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(masked, mask, 256 * sizeof(bool), cudaMemcpyHostToDevice);
  masked_whole_rounds<<<1, 64>>>(out, in, masked);
}
