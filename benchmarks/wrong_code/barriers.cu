// Barriers, masks and groups that part of the threads never come to.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__device__ float block_sum(float x) {
  __shared__ float s[256];
  s[threadIdx.x] = x;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  return s[0];
}

// wrong (barriers): half of the threads go round the barrier
__global__ void half_waits(float *out, const float *in) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  if (t < 64) {
    __syncthreads();
    out[blockIdx.x * 64 + t] = s[t] + s[127 - t];
  }
}
void run_half_waits(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8 * 64 * sizeof(float));
  cudaMalloc(&in, 8 * 128 * sizeof(float));
  cudaMemcpy(in, host, 8 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  half_waits<<<8, 128>>>(out, in);
}

// right: all wait
__global__ void all_wait(float *out, const float *in) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) out[blockIdx.x * 64 + t] = s[t] + s[127 - t];
}
void run_all_wait(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8 * 64 * sizeof(float));
  cudaMalloc(&in, 8 * 128 * sizeof(float));
  cudaMemcpy(in, host, 8 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  all_wait<<<8, 128>>>(out, in);
}

// wrong (barriers): who comes is decided by each thread's own datum
__global__ void by_value(int *out, const int *in) {
  __shared__ int s[256];
  int t = threadIdx.x, x = in[blockIdx.x * 256 + t];
  s[t] = x;
  if (x % 3 == 0) {
    __syncthreads();
    x += s[255 - t];
  }
  out[blockIdx.x * 256 + t] = x;
}
void run_by_value(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 1024 * sizeof(int));
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMemcpy(in, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  by_value<<<4, 256>>>(out, in);
}

// right: by one datum for the whole block
__global__ void by_block(int *out, const int *in, const int *mode) {
  __shared__ int s[256];
  int t = threadIdx.x, x = in[blockIdx.x * 256 + t];
  s[t] = x;
  if (mode[blockIdx.x] > 0) {
    __syncthreads();
    x += s[255 - t];
  }
  out[blockIdx.x * 256 + t] = x;
}
void run_by_block(const int *host, const int *modes) {
  int *out, *in, *mode;
  cudaMalloc(&out, 1024 * sizeof(int));
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMalloc(&mode, 4 * sizeof(int));
  cudaMemcpy(in, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(mode, modes, 4 * sizeof(int), cudaMemcpyHostToDevice);
  by_block<<<4, 256>>>(out, in, mode);
}

// wrong (barriers): threads make different numbers of turns, each with a barrier
__global__ void uneven_turns(float *out, const float *in) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  float x = 0.0f;
  for (int k = 0; k < t % 4 + 1; k++) {
    __syncthreads();
    x += s[(t + k) % 64];
  }
  out[t] = x;
}
void run_uneven_turns(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMemcpy(in, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  uneven_turns<<<1, 64>>>(out, in);
}

// right: the same number for all, and a guard inside
__global__ void even_turns(float *out, const float *in) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  float x = 0.0f;
  for (int k = 0; k < 4; k++) {
    __syncthreads();
    if (k <= t % 4) x += s[(t + k) % 64];
  }
  out[t] = x;
}
void run_even_turns(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMemcpy(in, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  even_turns<<<1, 64>>>(out, in);
}

// wrong (barriers): a grid-stride loop over a size that is not a multiple of the threads holds a barrier
__global__ void strided(float *x, int n) {
  __shared__ float s[128];
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
    s[threadIdx.x] = x[i];
    __syncthreads();
    x[i] = s[threadIdx.x] + s[threadIdx.x & ~31];
    __syncthreads();
  }
}
void run_strided(const float *host) {
  float *x;
  cudaMalloc(&x, 1000 * sizeof(float));
  cudaMemcpy(x, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  strided<<<2, 128>>>(x, 1000);
}

// right: the loop goes over whole blocks
__global__ void strided_whole(float *x, int n) {
  __shared__ float s[128];
  for (int base = blockIdx.x * 128; base < n; base += gridDim.x * 128) {
    int i = base + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) x[i] = s[threadIdx.x] + s[threadIdx.x & ~31];
    __syncthreads();
  }
}
void run_strided_whole(const float *host) {
  float *x;
  cudaMalloc(&x, 1000 * sizeof(float));
  cudaMemcpy(x, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  strided_whole<<<2, 128>>>(x, 1000);
}

// wrong (barriers): each side of the branch has a barrier of its own
__global__ void two_barriers(int *out, const int *in) {
  __shared__ int s[96];
  int t = threadIdx.x;
  s[t] = in[t];
  if (t % 2 == 0) {
    __syncthreads();
    out[t] = s[95 - t];
  } else {
    __syncthreads();
    out[t] = -s[95 - t];
  }
}
void run_two_barriers(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 96 * sizeof(int));
  cudaMalloc(&in, 96 * sizeof(int));
  cudaMemcpy(in, host, 96 * sizeof(int), cudaMemcpyHostToDevice);
  two_barriers<<<1, 96>>>(out, in);
}

// right: blocks part as wholes, each side with its barrier
__global__ void two_barriers_by_block(int *out, const int *in) {
  __shared__ int s[96];
  int t = threadIdx.x, i = blockIdx.x * 96 + t;
  s[t] = in[i];
  if (blockIdx.x % 2 == 0) {
    __syncthreads();
    out[i] = s[95 - t];
  } else {
    __syncthreads();
    out[i] = -s[95 - t];
  }
}
void run_two_barriers_by_block(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 4 * 96 * sizeof(int));
  cudaMalloc(&in, 4 * 96 * sizeof(int));
  cudaMemcpy(in, host, 4 * 96 * sizeof(int), cudaMemcpyHostToDevice);
  two_barriers_by_block<<<4, 96>>>(out, in);
}

// wrong (barriers): a data-dependent way out of a loop with a barrier
__global__ void until_small(float *x, int turns) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float mine = x[t];
  for (int k = 0; k < turns; k++) {
    if (mine < 0.5f) break;
    s[t] = mine;
    __syncthreads();
    mine = 0.5f * s[t];
    __syncthreads();
  }
  x[t] = mine;
}
void run_until_small(const float *host) {
  float *x;
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMemcpy(x, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  until_small<<<1, 64>>>(x, 8);
}

// right: the block agrees on the way out
__global__ void until_all_small(float *x, int turns) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float mine = x[t];
  for (int k = 0; k < turns; k++) {
    if (__syncthreads_and(mine < 0.5f)) break;
    s[t] = mine;
    __syncthreads();
    mine = 0.5f * s[t];
  }
  x[t] = mine;
}
void run_until_all_small(const float *host) {
  float *x;
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMemcpy(x, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  until_all_small<<<1, 64>>>(x, 8);
}

// wrong (barriers): the mask names lanes that do not come to the shuffle
__global__ void shuffle_in_branch(int *out, const int *in) {
  int lane = threadIdx.x & 31, i = blockIdx.x * 64 + threadIdx.x, x = in[i];
  if (lane < 16) x += __shfl_down_sync(0xffffffffu, x, 8);
  out[i] = x;
}
void run_shuffle_in_branch(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(int));
  cudaMemcpy(in, host, 512 * sizeof(int), cudaMemcpyHostToDevice);
  shuffle_in_branch<<<8, 64>>>(out, in);
}

// right: the mask names those that do
__global__ void shuffle_of_half(int *out, const int *in) {
  int lane = threadIdx.x & 31, i = blockIdx.x * 64 + threadIdx.x, x = in[i];
  if (lane < 16) x += __shfl_down_sync(0x0000ffffu, x, 8, 16);
  out[i] = x;
}
void run_shuffle_of_half(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(int));
  cudaMemcpy(in, host, 512 * sizeof(int), cudaMemcpyHostToDevice);
  shuffle_of_half<<<8, 64>>>(out, in);
}

// wrong (barriers): lanes outside of the mask call the shuffle too
__global__ void outside_of_mask(int *out, const int *in) {
  int i = blockIdx.x * 32 + threadIdx.x;
  int x = in[i];
  x += __shfl_xor_sync(0x000000ffu, x, 1);
  out[i] = x;
}
void run_outside_of_mask(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(int));
  cudaMemcpy(in, host, 512 * sizeof(int), cudaMemcpyHostToDevice);
  outside_of_mask<<<16, 32>>>(out, in);
}

// right: all lanes, all bits
__global__ void inside_of_mask(int *out, const int *in) {
  int i = blockIdx.x * 32 + threadIdx.x;
  int x = in[i];
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  out[i] = x;
}
void run_inside_of_mask(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(int));
  cudaMemcpy(in, host, 512 * sizeof(int), cudaMemcpyHostToDevice);
  inside_of_mask<<<16, 32>>>(out, in);
}

// wrong (barriers): __syncwarp() with all lanes in one lane's branch
__global__ void lone_syncwarp(int *out, const int *in) {
  __shared__ int s[32];
  int lane = threadIdx.x;
  s[lane] = in[lane];
  if (lane == 0) {
    __syncwarp();
    int sum = 0;
    for (int k = 0; k < 32; k++) sum += s[k];
    out[0] = sum;
  }
}
void run_lone_syncwarp(const int *host) {
  int *out, *in;
  cudaMalloc(&out, sizeof(int));
  cudaMalloc(&in, 32 * sizeof(int));
  cudaMemcpy(in, host, 32 * sizeof(int), cudaMemcpyHostToDevice);
  lone_syncwarp<<<1, 32>>>(out, in);
}

// right: in front of it
__global__ void joint_syncwarp(int *out, const int *in) {
  __shared__ int s[32];
  int lane = threadIdx.x;
  s[lane] = in[lane];
  __syncwarp();
  if (lane == 0) {
    int sum = 0;
    for (int k = 0; k < 32; k++) sum += s[k];
    out[0] = sum;
  }
}
void run_joint_syncwarp(const int *host) {
  int *out, *in;
  cudaMalloc(&out, sizeof(int));
  cudaMalloc(&in, 32 * sizeof(int));
  cudaMemcpy(in, host, 32 * sizeof(int), cudaMemcpyHostToDevice);
  joint_syncwarp<<<1, 32>>>(out, in);
}

// wrong (barriers): one block leaves before the grid's barrier
__global__ void grid_leaves(int *x) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * 64 + threadIdx.x;
  if (blockIdx.x == 0) {
    x[i] = 1;
    return;
  }
  x[i] = 2;
  grid.sync();
  x[i] += x[threadIdx.x];
}
void run_grid_leaves(const int *host) {
  int *x;
  cudaMalloc(&x, 256 * sizeof(int));
  cudaMemcpy(x, host, 256 * sizeof(int), cudaMemcpyHostToDevice);
  void *given[] = {&x};
  cudaLaunchCooperativeKernel((void *)grid_leaves, dim3(4), dim3(64), given, 0, 0);
}

// right: all blocks come
__global__ void grid_waits(int *x, int *y) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = blockIdx.x == 0 ? 1 : 2;
  grid.sync();
  y[i] = x[i] + x[threadIdx.x];
}
void run_grid_waits() {
  int *x, *y;
  cudaMalloc(&x, 256 * sizeof(int));
  cudaMalloc(&y, 256 * sizeof(int));
  void *given[] = {&x, &y};
  cudaLaunchCooperativeKernel((void *)grid_waits, dim3(4), dim3(64), given, 0, 0);
}

// wrong (barriers): the grid's barrier stands under a condition on the thread
__global__ void grid_by_thread(int *x) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;
  if (threadIdx.x < 32) cg::this_grid().sync();
  if (threadIdx.x < 32) x[i] = x[i] + 1;
}
void run_grid_by_thread() {
  int *x;
  cudaMalloc(&x, 256 * sizeof(int));
  void *given[] = {&x};
  cudaLaunchCooperativeKernel((void *)grid_by_thread, dim3(4), dim3(64), given, 0, 0);
}

// right: under one that the whole grid shares
__global__ void grid_by_mode(int *x, int mode) {
  int i = blockIdx.x * 64 + threadIdx.x;
  x[i] = i;
  if (mode > 0) cg::this_grid().sync();
  x[i] = x[i] + 1;
}
void run_grid_by_mode() {
  int *x;
  int mode = 1;
  cudaMalloc(&x, 256 * sizeof(int));
  void *given[] = {&x, &mode};
  cudaLaunchCooperativeKernel((void *)grid_by_mode, dim3(4), dim3(64), given, 0, 0);
}

// wrong (barriers): a guard on the size splits the last block around a helper's barrier
__global__ void guarded_sum(float *sums, const float *in, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {
    float sum = block_sum(in[i]);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}
void run_guarded_sum(const float *host) {
  float *sums, *in;
  cudaMalloc(&sums, 4 * sizeof(float));
  cudaMalloc(&in, 1000 * sizeof(float));
  cudaMemcpy(in, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  guarded_sum<<<4, 256>>>(sums, in, 1000);
}

// right: the guard is on the value
__global__ void whole_sum(float *sums, const float *in, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float sum = block_sum(i < n ? in[i] : 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
void run_whole_sum(const float *host) {
  float *sums, *in;
  cudaMalloc(&sums, 4 * sizeof(float));
  cudaMalloc(&in, 1000 * sizeof(float));
  cudaMemcpy(in, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  whole_sum<<<4, 256>>>(sums, in, 1000);
}

// wrong (barriers): a switch on the thread's number, with a barrier in one case
__global__ void by_case(int *out, const int *in) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  switch (t / 32) {
    case 0:
      __syncthreads();
      out[t] = s[t + 64];
      break;
    case 1:
      out[t] = s[t];
      break;
    default:
      out[t] = 0;
  }
}
void run_by_case(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 128 * sizeof(int));
  cudaMalloc(&in, 128 * sizeof(int));
  cudaMemcpy(in, host, 128 * sizeof(int), cudaMemcpyHostToDevice);
  by_case<<<1, 128>>>(out, in);
}

// right: a switch on the block's number
__global__ void by_case_of_block(int *out, const int *in) {
  __shared__ int s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = in[i];
  switch (blockIdx.x) {
    case 0:
      __syncthreads();
      out[i] = s[127 - t];
      break;
    default:
      out[i] = s[t];
  }
}
void run_by_case_of_block(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 256 * sizeof(int));
  cudaMalloc(&in, 256 * sizeof(int));
  cudaMemcpy(in, host, 256 * sizeof(int), cudaMemcpyHostToDevice);
  by_case_of_block<<<2, 128>>>(out, in);
}

// wrong (barriers): a named barrier for 128 threads, of which 64 come
__global__ void named(int *out, const int *in) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  if (t < 64) {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[t] = s[63 - t];
  }
}
void run_named(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&in, 128 * sizeof(int));
  cudaMemcpy(in, host, 128 * sizeof(int), cudaMemcpyHostToDevice);
  named<<<1, 128>>>(out, in);
}

// right: for the 64 that come
__global__ void named_of_half(int *out, const int *in) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  if (t < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = s[63 - t];
  }
}
void run_named_of_half(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&in, 128 * sizeof(int));
  cudaMemcpy(in, host, 128 * sizeof(int), cudaMemcpyHostToDevice);
  named_of_half<<<1, 128>>>(out, in);
}

// wrong (barriers): a while loop over each row's own length waits in each turn
__global__ void ragged(float *out, const float *in, const int *begin) {
  __shared__ float s[64];
  int t = threadIdx.x, at = begin[t], end = begin[t + 1];
  float sum = 0.0f;
  while (at < end) {
    s[t] = in[at];
    __syncthreads();
    sum += s[t] * s[0];
    __syncthreads();
    at++;
  }
  out[t] = sum;
}
void run_ragged(const float *host, const int *starts) {
  float *out, *in;
  int *begin;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 4096 * sizeof(float));
  cudaMalloc(&begin, 65 * sizeof(int));
  cudaMemcpy(in, host, 4096 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(begin, starts, 65 * sizeof(int), cudaMemcpyHostToDevice);
  ragged<<<1, 64>>>(out, in, begin);
}

// right: over the length of the block's one row
__global__ void one_row(float *out, const float *in, const int *begin) {
  __shared__ float s[64];
  int t = threadIdx.x, at = begin[blockIdx.x], end = begin[blockIdx.x + 1];
  float sum = 0.0f;
  while (at < end) {
    s[t] = at + t < end ? in[at + t] : 0.0f;
    __syncthreads();
    sum += s[t] * s[0];
    __syncthreads();
    at += 64;
  }
  out[blockIdx.x * 64 + t] = sum;
}
void run_one_row(const float *host, const int *starts) {
  float *out, *in;
  int *begin;
  cudaMalloc(&out, 8 * 64 * sizeof(float));
  cudaMalloc(&in, 4096 * sizeof(float));
  cudaMalloc(&begin, 9 * sizeof(int));
  cudaMemcpy(in, host, 4096 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(begin, starts, 9 * sizeof(int), cudaMemcpyHostToDevice);
  one_row<<<8, 64>>>(out, in, begin);
}

// right: threads that have ended are not waited for
__global__ void early_return(float *out, const float *in, int n) {
  __shared__ float s[128];
  int t = threadIdx.x;
  if (t >= 96) return;
  s[t] = in[blockIdx.x * 96 + t];
  __syncthreads();
  out[blockIdx.x * 96 + t] = s[95 - t];
}
void run_early_return(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 960 * sizeof(float));
  cudaMalloc(&in, 960 * sizeof(float));
  cudaMemcpy(in, host, 960 * sizeof(float), cudaMemcpyHostToDevice);
  early_return<<<10, 128>>>(out, in, 960);
}
