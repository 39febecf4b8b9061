// Memory of the host and memory that nobody wrote, in styles that the rules were not written by.
#include <cuda_runtime.h>
#include <array>
#include <memory>
#include <vector>

// wrong (memory): 256 bytes of 256 counters are zeroed in the stream
__global__ void count_levels(int *levels, const unsigned char *in) {
  atomicAdd(&levels[in[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
void run_count_levels(const unsigned char *in, cudaStream_t stream) {
  int *levels;
  cudaMalloc(&levels, 256 * sizeof(int));
  cudaMemsetAsync(levels, 0, 256, stream);
  count_levels<<<16, 256, 0, stream>>>(levels, in);
}

// right: all bytes of them
__global__ void count_all_levels(int *levels, const unsigned char *in) {
  atomicAdd(&levels[in[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
void run_count_all_levels(const unsigned char *in, cudaStream_t stream) {
  int *levels;
  cudaMalloc(&levels, 256 * sizeof(int));
  cudaMemsetAsync(levels, 0, 256 * sizeof(int), stream);
  count_all_levels<<<16, 256, 0, stream>>>(levels, in);
}

// wrong (memory): as many bytes are copied as the vector has elements
__global__ void square(double *x, size_t n) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}
void run_square(std::vector<double> &values) {
  double *x;
  cudaMalloc(&x, values.size() * sizeof(double));
  cudaMemcpyAsync(x, values.data(), values.size(), cudaMemcpyHostToDevice);
  square<<<(values.size() + 127) / 128, 128>>>(x, values.size());
  cudaMemcpy(values.data(), x, values.size() * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(x);
}

// right: as many as they take
__global__ void square_all(double *x, size_t n) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}
void run_square_all(std::vector<double> &values) {
  double *x;
  cudaMalloc(&x, values.size() * sizeof(double));
  cudaMemcpyAsync(x, values.data(), values.size() * sizeof(double), cudaMemcpyHostToDevice);
  square_all<<<(values.size() + 127) / 128, 128>>>(x, values.size());
  cudaMemcpy(values.data(), x, values.size() * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(x);
}

// wrong (memory): sums of a thread's own that start with nothing
__global__ void four_sums(float4 *out, const float *in) {
  float sum[4];
  for (int k = 0; k < 32; ++k) sum[k & 3] += in[k * blockDim.x + threadIdx.x];
  out[threadIdx.x] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
void run_four_sums(const float *host) {
  float4 *out;
  float *in;
  cudaMalloc(&out, 64 * sizeof(float4));
  cudaMalloc(&in, 2048 * sizeof(float));
  cudaMemcpy(in, host, 2048 * sizeof(float), cudaMemcpyHostToDevice);
  four_sums<<<1, 64>>>(out, in);
}

// right: with zero
__global__ void four_sums_from_zero(float4 *out, const float *in) {
  float sum[4] = {};
  for (int k = 0; k < 32; ++k) sum[k & 3] += in[k * blockDim.x + threadIdx.x];
  out[threadIdx.x] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
void run_four_sums_from_zero(const float *host) {
  float4 *out;
  float *in;
  cudaMalloc(&out, 64 * sizeof(float4));
  cudaMalloc(&in, 2048 * sizeof(float));
  cudaMemcpy(in, host, 2048 * sizeof(float), cudaMemcpyHostToDevice);
  four_sums_from_zero<<<1, 64>>>(out, in);
}

// wrong (memory): the velocities are used in the first step, and nobody set them
struct Particles {
  float3 *place;
  float3 *speed;
};
__global__ void advance(Particles p, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p.place[i].x += dt * p.speed[i].x;
  p.place[i].y += dt * p.speed[i].y;
}
void run_advance(const float3 *host, int n) {
  Particles p;
  cudaMalloc(&p.place, n * sizeof(float3));
  cudaMalloc(&p.speed, n * sizeof(float3));
  cudaMemcpy(p.place, host, n * sizeof(float3), cudaMemcpyHostToDevice);
  advance<<<(n + 127) / 128, 128>>>(p, 0.01f, n);
}

// right: they start with zero
struct Bodies {
  float3 *place;
  float3 *speed;
};
__global__ void advance_from_rest(Bodies p, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p.place[i].x += dt * p.speed[i].x;
  p.place[i].y += dt * p.speed[i].y;
}
void run_advance_from_rest(const float3 *host, int n) {
  Bodies p;
  cudaMalloc(&p.place, n * sizeof(float3));
  cudaMalloc(&p.speed, n * sizeof(float3));
  cudaMemcpy(p.place, host, n * sizeof(float3), cudaMemcpyHostToDevice);
  cudaMemset(p.speed, 0, n * sizeof(float3));
  advance_from_rest<<<(n + 127) / 128, 128>>>(p, 0.01f, n);
}

// wrong (memory): the count is a variable of the host
__global__ void count_positive(int *count, const float *x) {
  if (x[blockIdx.x * blockDim.x + threadIdx.x] > 0.0f) atomicAdd(count, 1);
}
int run_count_positive(const float *x) {
  int count = 0;
  count_positive<<<8, 128>>>(&count, x);
  cudaDeviceSynchronize();
  return count;
}

// right: of the device
__global__ void count_above_zero(int *count, const float *x) {
  if (x[blockIdx.x * blockDim.x + threadIdx.x] > 0.0f) atomicAdd(count, 1);
}
int run_count_above_zero(const float *x) {
  int *total, count = 0;
  cudaMalloc(&total, sizeof(int));
  cudaMemset(total, 0, sizeof(int));
  count_above_zero<<<8, 128>>>(total, x);
  cudaMemcpy(&count, total, sizeof(int), cudaMemcpyDeviceToHost);
  return count;
}

// wrong (memory): a smart pointer keeps memory of the host
__global__ void ramp(float *x) { x[threadIdx.x] = threadIdx.x; }
void run_ramp() {
  auto values = std::make_unique<float[]>(256);
  ramp<<<1, 256>>>(values.get());
  cudaDeviceSynchronize();
}

// right: one that frees the device's
struct Free {
  void operator()(void *p) const { cudaFree(p); }
};
__global__ void ramp_there(float *x) { x[threadIdx.x] = threadIdx.x; }
void run_ramp_there() {
  float *memory = nullptr;
  cudaMalloc(&memory, 256 * sizeof(float));
  std::unique_ptr<float[], Free> values(memory);
  ramp_there<<<1, 256>>>(values.get());
  cudaDeviceSynchronize();
}

// wrong (memory): the array is freed in each turn and used in the next
__global__ void decay(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 0.9f; }
void run_decay(const float *host, float *back) {
  float *x;
  cudaMalloc(&x, 1024 * sizeof(float));
  cudaMemcpy(x, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  for (int turn = 0; turn < 10; ++turn) {
    decay<<<4, 256>>>(x);
    cudaMemcpy(back + 1024 * turn, x, 1024 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(x);
  }
}

// right: behind the last
__global__ void decay_on(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 0.9f; }
void run_decay_on(const float *host, float *back) {
  float *x;
  cudaMalloc(&x, 1024 * sizeof(float));
  cudaMemcpy(x, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  for (int turn = 0; turn < 10; ++turn) {
    decay_on<<<4, 256>>>(x);
    cudaMemcpy(back + 1024 * turn, x, 1024 * sizeof(float), cudaMemcpyDeviceToHost);
  }
  cudaFree(x);
}

// wrong (memory): the size of the pointer is copied, not that of the array
__global__ void negate(float *x) { x[threadIdx.x] = -x[threadIdx.x]; }
void run_negate(const float *host) {
  float *x;
  cudaMalloc(&x, 128 * sizeof(float));
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  negate<<<1, 128>>>(x);
}

// right: of an array, it is the array's
__global__ void negate_all(float *x) { x[threadIdx.x] = -x[threadIdx.x]; }
void run_negate_all() {
  float *x, host[128];
  for (int i = 0; i < 128; ++i) host[i] = i;
  cudaMalloc(&x, 128 * sizeof(float));
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  negate_all<<<1, 128>>>(x);
}

// wrong (memory): a slot for each of 32 warps is summed, and eight warps wrote theirs
__global__ void total_of_warps(float *out, const float *in) {
  __shared__ float part[32];
  float v = in[blockIdx.x * 256 + threadIdx.x];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = part[threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}
void run_total_of_warps(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 4 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  total_of_warps<<<4, 256>>>(out, in);
}

// right: eight slots are summed
__global__ void total_of_eight_warps(float *out, const float *in) {
  __shared__ float part[32];
  float v = in[blockIdx.x * 256 + threadIdx.x];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}
void run_total_of_eight_warps(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 4 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  total_of_eight_warps<<<4, 256>>>(out, in);
}
