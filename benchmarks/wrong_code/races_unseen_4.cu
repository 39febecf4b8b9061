// Races in the styles of public kernels: tiles of cooperative groups, grid-stride loops, templates over the block, warp scans.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

// wrong (races): a tile of 32 waits where the whole block has to
template <int kBlock>
__global__ void reverse_blocks(float *__restrict__ out, const float *__restrict__ in, int n) {
  __shared__ float staged[kBlock];
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  for (int base = blockIdx.x * kBlock; base < n; base += gridDim.x * kBlock) {
    staged[block.thread_rank()] = in[base + block.thread_rank()];
    tile.sync();
    out[base + block.thread_rank()] = staged[kBlock - 1 - block.thread_rank()];
    block.sync();
  }
}
void run_reverse_blocks(float *out, const float *in) { reverse_blocks<256><<<8, 256>>>(out, in, 1 << 14); }

// right: the block waits
template <int kBlock>
__global__ void reverse_staged(float *__restrict__ out, const float *__restrict__ in, int n) {
  __shared__ float staged[kBlock];
  cg::thread_block block = cg::this_thread_block();
  for (int base = blockIdx.x * kBlock; base < n; base += gridDim.x * kBlock) {
    staged[block.thread_rank()] = in[base + block.thread_rank()];
    block.sync();
    out[base + block.thread_rank()] = staged[kBlock - 1 - block.thread_rank()];
    block.sync();
  }
}
void run_reverse_staged(float *out, const float *in) { reverse_staged<256><<<8, 256>>>(out, in, 1 << 14); }

// wrong (races): the warps' sums of the next row are stored while the first warp still reads those of this one
__inline__ __device__ float warpSum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
  return v;
}
template <typename T, int kThreads>
__global__ void row_means(T *means, const T *x, int rows, int cols) {
  __shared__ float partial[kThreads / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0.f;
    for (int c = threadIdx.x; c < cols; c += kThreads) sum += static_cast<float>(x[row * cols + c]);
    sum = warpSum(sum);
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      sum = lane < kThreads / 32 ? partial[lane] : 0.f;
      sum = warpSum(sum);
      if (lane == 0) means[row] = static_cast<T>(sum / cols);
    }
  }
}
void run_row_means(float *means, const float *x) { row_means<float, 256><<<16, 256>>>(means, x, 64, 512); }

// right: the block waits at the end of each row
__inline__ __device__ float sumOfWarp(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
  return v;
}
template <typename T, int kThreads>
__global__ void mean_of_rows(T *means, const T *x, int rows, int cols) {
  __shared__ float partial[kThreads / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0.f;
    for (int c = threadIdx.x; c < cols; c += kThreads) sum += static_cast<float>(x[row * cols + c]);
    sum = sumOfWarp(sum);
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      sum = lane < kThreads / 32 ? partial[lane] : 0.f;
      sum = sumOfWarp(sum);
      if (lane == 0) means[row] = static_cast<T>(sum / cols);
    }
    __syncthreads();
  }
}
void run_mean_of_rows(float *means, const float *x) { mean_of_rows<float, 256><<<16, 256>>>(means, x, 64, 512); }

// wrong (races): edges of one vertex are relaxed by threads of many blocks with a plain minimum
struct Csr {
  const int *offsets;
  const int *targets;
  const float *weights;
};
__global__ void relax(float *dist, Csr graph, int vertices) {
  for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < vertices; v += blockDim.x * gridDim.x) {
    for (int e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
      const int target = graph.targets[e];
      const float candidate = dist[v] + graph.weights[e];
      if (candidate < dist[target]) dist[target] = candidate;
    }
  }
}
void run_relax(float *dist, const int *offsets, const int *targets, const float *weights) {
  relax<<<32, 128>>>(dist, Csr{offsets, targets, weights}, 4096);
}

// right: from the distances of the round before, by atomics
struct Edges {
  const int *offsets;
  const int *targets;
  const int *weights;
};
__global__ void relax_atomically(int *next, const int *dist, Edges graph, int vertices) {
  for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < vertices; v += blockDim.x * gridDim.x) {
    for (int e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
      atomicMin(&next[graph.targets[e]], dist[v] + graph.weights[e]);
  }
}
void run_relax_atomically(int *next, const int *dist, const int *offsets, const int *targets, const int *weights) {
  relax_atomically<<<32, 128>>>(next, dist, Edges{offsets, targets, weights}, 4096);
}
