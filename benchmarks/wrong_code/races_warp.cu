// Lanes of one warp that use each other's memory: since Volta they run in any order too.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

// wrong (races): lanes read what others write in the step before, with nothing between
__global__ void warp_sum(float *sums, const float *in) {
  __shared__ float part[64];
  int t = threadIdx.x;
  part[t] = in[blockIdx.x * 64 + t] + in[blockIdx.x * 64 + t + 32];
  part[t + 32] = 0.0f;
  __syncthreads();
  part[t] += part[t + 16];
  part[t] += part[t + 8];
  part[t] += part[t + 4];
  part[t] += part[t + 2];
  part[t] += part[t + 1];
  if (t == 0) sums[blockIdx.x] = part[0];
}
void run_warp_sum(const float *host) {
  float *sums, *in;
  cudaMalloc(&sums, 16 * sizeof(float));
  cudaMalloc(&in, 16 * 64 * sizeof(float));
  cudaMemcpy(in, host, 16 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  warp_sum<<<16, 32>>>(sums, in);
}

// right: __syncwarp() between each read and each write
__global__ void warp_sum_ordered(float *sums, const float *in) {
  __shared__ float part[64];
  int t = threadIdx.x;
  float x = in[blockIdx.x * 64 + t] + in[blockIdx.x * 64 + t + 32];
  part[t] = x;
  part[t + 32] = 0.0f;
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    x += part[t + step];
    __syncwarp();
    part[t] = x;
    __syncwarp();
  }
  if (t == 0) sums[blockIdx.x] = part[0];
}
void run_warp_sum_ordered(const float *host) {
  float *sums, *in;
  cudaMalloc(&sums, 16 * sizeof(float));
  cudaMalloc(&in, 16 * 64 * sizeof(float));
  cudaMemcpy(in, host, 16 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  warp_sum_ordered<<<16, 32>>>(sums, in);
}

// wrong (races): the classic tail with volatile and no __syncwarp()
template <unsigned kBlock>
__device__ void tail(volatile int *s, unsigned t) {
  if (kBlock >= 64) s[t] += s[t + 32];
  s[t] += s[t + 16];
  s[t] += s[t + 8];
  s[t] += s[t + 4];
  s[t] += s[t + 2];
  s[t] += s[t + 1];
}
template <unsigned kBlock>
__global__ void reduce(int *sums, const int *in) {
  __shared__ int s[kBlock];
  unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * kBlock + t];
  __syncthreads();
  if (kBlock >= 128) {
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
  }
  if (t < 32) tail<kBlock>(s, t);
  if (t == 0) sums[blockIdx.x] = s[0];
}
void run_reduce(const int *host) {
  int *sums, *in;
  cudaMalloc(&sums, 16 * sizeof(int));
  cudaMalloc(&in, 16 * 128 * sizeof(int));
  cudaMemcpy(in, host, 16 * 128 * sizeof(int), cudaMemcpyHostToDevice);
  reduce<128><<<16, 128>>>(sums, in);
}

// right: the tail in registers
template <unsigned kBlock>
__global__ void reduce_by_shuffles(int *sums, const int *in) {
  __shared__ int s[kBlock];
  unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * kBlock + t];
  __syncthreads();
  if (kBlock >= 128) {
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
  }
  if (t < 32) {
    int x = s[t] + s[t + 32];
    for (int k = 16; k > 0; k >>= 1) x += __shfl_down_sync(0xffffffff, x, k);
    if (t == 0) sums[blockIdx.x] = x;
  }
}
void run_reduce_by_shuffles(const int *host) {
  int *sums, *in;
  cudaMalloc(&sums, 16 * sizeof(int));
  cudaMalloc(&in, 16 * 128 * sizeof(int));
  cudaMemcpy(in, host, 16 * 128 * sizeof(int), cudaMemcpyHostToDevice);
  reduce_by_shuffles<128><<<16, 128>>>(sums, in);
}

// wrong (races): a warp's row is turned in shared memory in one breath
__global__ void warp_reverse(int *data) {
  __shared__ int row[4][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int i = blockIdx.x * 128 + threadIdx.x;
  row[warp][lane] = data[i];
  data[i] = row[warp][31 - lane];
}
void run_warp_reverse(const int *host) {
  int *data;
  cudaMalloc(&data, 1024 * sizeof(int));
  cudaMemcpy(data, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  warp_reverse<<<8, 128>>>(data);
}

// right: with __syncwarp()
__global__ void warp_reverse_ordered(int *data) {
  __shared__ int row[4][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int i = blockIdx.x * 128 + threadIdx.x;
  row[warp][lane] = data[i];
  __syncwarp();
  data[i] = row[warp][31 - lane];
}
void run_warp_reverse_ordered(const int *host) {
  int *data;
  cudaMalloc(&data, 1024 * sizeof(int));
  cudaMemcpy(data, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  warp_reverse_ordered<<<8, 128>>>(data);
}

// wrong (races): lane 0 sums what the other lanes may not have stored yet
__global__ void first_lane_sums(float *out, const float *in) {
  __shared__ float slots[128];
  int t = threadIdx.x;
  slots[t] = in[blockIdx.x * 128 + t] * 0.5f;
  if (t % 32 == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 32; ++k) sum += slots[t + k];
    out[blockIdx.x * 4 + t / 32] = sum;
  }
}
void run_first_lane_sums(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8 * 4 * sizeof(float));
  cudaMalloc(&in, 8 * 128 * sizeof(float));
  cudaMemcpy(in, host, 8 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  first_lane_sums<<<8, 128>>>(out, in);
}

// right: the tile of 32 is waited for
__global__ void first_lane_sums_ordered(float *out, const float *in) {
  namespace cg = cooperative_groups;
  __shared__ float slots[128];
  auto lanes = cg::tiled_partition<32>(cg::this_thread_block());
  int t = threadIdx.x;
  slots[t] = in[blockIdx.x * 128 + t] * 0.5f;
  lanes.sync();
  if (t % 32 == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 32; ++k) sum += slots[t + k];
    out[blockIdx.x * 4 + t / 32] = sum;
  }
}
void run_first_lane_sums_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8 * 4 * sizeof(float));
  cudaMalloc(&in, 8 * 128 * sizeof(float));
  cudaMemcpy(in, host, 8 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  first_lane_sums_ordered<<<8, 128>>>(out, in);
}

// wrong (races): one side of a branch hands to the other
__global__ void pass_over(int *out, const int *in) {
  __shared__ int mail[32];
  int lane = threadIdx.x;
  int got = 0;
  if (lane < 16)
    mail[lane] = in[blockIdx.x * 32 + lane];
  else
    got = mail[lane - 16];
  out[blockIdx.x * 32 + lane] = got;
}
void run_pass_over(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 320 * sizeof(int));
  cudaMalloc(&in, 320 * sizeof(int));
  cudaMemcpy(in, host, 320 * sizeof(int), cudaMemcpyHostToDevice);
  pass_over<<<10, 32>>>(out, in);
}

// right: the branch ends before the mail is read
__global__ void pass_over_ordered(int *out, const int *in) {
  __shared__ int mail[32];
  int lane = threadIdx.x;
  int got = 0;
  if (lane < 16) mail[lane] = in[blockIdx.x * 32 + lane];
  __syncwarp();
  if (lane >= 16) got = mail[lane - 16];
  out[blockIdx.x * 32 + lane] = got;
}
void run_pass_over_ordered(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 320 * sizeof(int));
  cudaMalloc(&in, 320 * sizeof(int));
  cudaMemcpy(in, host, 320 * sizeof(int), cudaMemcpyHostToDevice);
  pass_over_ordered<<<10, 32>>>(out, in);
}

// wrong (races): two lanes store their own value to each slot
__global__ void halves(int *out, const int *in) {
  __shared__ int slot[16];
  int lane = threadIdx.x;
  slot[lane / 2] = in[blockIdx.x * 32 + lane];
  __syncwarp();
  if (lane < 16) out[blockIdx.x * 16 + lane] = slot[lane];
}
void run_halves(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 160 * sizeof(int));
  cudaMalloc(&in, 320 * sizeof(int));
  cudaMemcpy(in, host, 320 * sizeof(int), cudaMemcpyHostToDevice);
  halves<<<10, 32>>>(out, in);
}

// right: one of the two does
__global__ void halves_ordered(int *out, const int *in) {
  __shared__ int slot[16];
  int lane = threadIdx.x;
  if (lane % 2 == 0) slot[lane / 2] = in[blockIdx.x * 32 + lane];
  __syncwarp();
  if (lane < 16) out[blockIdx.x * 16 + lane] = slot[lane];
}
void run_halves_ordered(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 160 * sizeof(int));
  cudaMalloc(&in, 320 * sizeof(int));
  cudaMemcpy(in, host, 320 * sizeof(int), cudaMemcpyHostToDevice);
  halves_ordered<<<10, 32>>>(out, in);
}

// wrong (races): the next turn's store meets the reads of this one within the warp
__global__ void walk(float *out, const float *in, int turns) {
  __shared__ float window[32];
  int lane = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < turns; k++) {
    window[lane] = in[k * 32 + lane];
    __syncwarp();
    sum += window[(lane + 1) % 32];
  }
  out[lane] = sum;
}
void run_walk(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMalloc(&in, 12 * 32 * sizeof(float));
  cudaMemcpy(in, host, 12 * 32 * sizeof(float), cudaMemcpyHostToDevice);
  walk<<<1, 32>>>(out, in, 12);
}

// right: a second __syncwarp() ends the turn
__global__ void walk_ordered(float *out, const float *in, int turns) {
  __shared__ float window[32];
  int lane = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < turns; k++) {
    window[lane] = in[k * 32 + lane];
    __syncwarp();
    sum += window[(lane + 1) % 32];
    __syncwarp();
  }
  out[lane] = sum;
}
void run_walk_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMalloc(&in, 12 * 32 * sizeof(float));
  cudaMemcpy(in, host, 12 * 32 * sizeof(float), cudaMemcpyHostToDevice);
  walk_ordered<<<1, 32>>>(out, in, 12);
}

// right: each lane has a slot of its own
__global__ void own_slots(float *out, const float *in) {
  __shared__ float slot[128];
  int t = threadIdx.x;
  slot[t] = in[blockIdx.x * 128 + t];
  slot[t] = slot[t] * slot[t] + 1.0f;
  out[blockIdx.x * 128 + t] = slot[t];
}
void run_own_slots(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  own_slots<<<8, 128>>>(out, in);
}
