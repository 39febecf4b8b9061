// Barriers in the styles of public kernels: classes that cast themselves, tiles, warps that return early, votes.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

// wrong (barriers): the derived class's step waits, and the base calls it for the threads with work alone
template <typename Derived>
struct Stage {
  __device__ void run(float *data, int count) {
    const int i = threadIdx.x;
    if (i < count) static_cast<Derived *>(this)->step(data, i);
  }
};
struct Smooth : Stage<Smooth> {
  float *scratch;
  __device__ explicit Smooth(float *s) : scratch(s) {}
  __device__ void step(float *data, int i) {
    scratch[i] = data[blockIdx.x * 200 + i];
    __syncthreads();
    data[blockIdx.x * 200 + i] = 0.5f * (scratch[i] + scratch[i == 0 ? 0 : i - 1]);
  }
};
__global__ void smooth(float *data) {
  __shared__ float scratch[256];
  Smooth stage(scratch);
  stage.run(data, 200);
}
void run_smooth(float *data) { smooth<<<16, 256>>>(data); }

// right: every thread calls it, and the step guards its accesses
template <typename Derived>
struct Phase {
  __device__ void run(float *data, int count) { static_cast<Derived *>(this)->step(data, threadIdx.x, count); }
};
struct Blur : Phase<Blur> {
  float *scratch;
  __device__ explicit Blur(float *s) : scratch(s) {}
  __device__ void step(float *data, int i, int count) {
    if (i < count) scratch[i] = data[blockIdx.x * 200 + i];
    __syncthreads();
    if (i < count) data[blockIdx.x * 200 + i] = 0.5f * (scratch[i] + scratch[i == 0 ? 0 : i - 1]);
  }
};
__global__ void blur(float *data) {
  __shared__ float scratch[256];
  Blur phase(scratch);
  phase.run(data, 200);
}
void run_blur(float *data) { blur<<<16, 256>>>(data); }

// wrong (barriers): a grid-stride loop whose last turn has a part of the block, with a barrier inside
template <int kBlock>
__global__ void neighbours(float *out, const float *in, int n) {
  __shared__ float tile[kBlock];
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += kBlock * gridDim.x) {
    tile[threadIdx.x] = in[i];
    __syncthreads();
    const float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0.f;
    __syncthreads();
    out[i] = tile[threadIdx.x] - left;
  }
}
void run_neighbours(float *out, const float *in) { neighbours<256><<<4, 256>>>(out, in, 5000); }

// right: the loop's bound is the block's, and the accesses are guarded
template <int kBlock>
__global__ void neighbours_by_blocks(float *out, const float *in, int n) {
  __shared__ float tile[kBlock];
  for (int base = blockIdx.x * kBlock; base < n; base += kBlock * gridDim.x) {
    const int i = base + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0.f;
    __syncthreads();
    const float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0.f;
    __syncthreads();
    if (i < n) out[i] = tile[threadIdx.x] - left;
  }
}
void run_neighbours_by_blocks(float *out, const float *in) { neighbours_by_blocks<256><<<4, 256>>>(out, in, 5000); }

// wrong (barriers): the sum over the whole warp is taken by the lanes that have an element
__global__ void count_large(int *count, const float *x, float limit, int n) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int mine = x[i] > limit;
    for (int d = tile.size() / 2; d > 0; d /= 2) mine += tile.shfl_down(mine, d);
    if (tile.thread_rank() == 0) atomicAdd(count, mine);
  }
}
void run_count_large(int *count, const float *x) { count_large<<<8, 128>>>(count, x, 0.5f, 1000); }

// right: all lanes take part
__global__ void count_larger(int *count, const float *x, float limit, int n) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int mine = i < n ? x[i] > limit : 0;
  for (int d = tile.size() / 2; d > 0; d /= 2) mine += tile.shfl_down(mine, d);
  if (tile.thread_rank() == 0) atomicAdd(count, mine);
}
void run_count_larger(int *count, const float *x) { count_larger<<<8, 128>>>(count, x, 0.5f, 1000); }
