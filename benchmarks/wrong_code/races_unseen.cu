// Races in styles that the rules were not written by: structs, lambdas, templates, unions, helpers with memory of their own.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

struct Field {
  float *now;
  float *scratch;
  int width;
};
static Field field(const float *host, int width, int rows) {
  Field f;
  f.width = width;
  cudaMalloc(&f.now, width * rows * sizeof(float));
  cudaMalloc(&f.scratch, width * rows * sizeof(float));
  cudaMemcpy(f.now, host, width * rows * sizeof(float), cudaMemcpyHostToDevice);
  return f;
}

// wrong (races): a block's scratch row in global memory is read by the neighbours with no barrier
__global__ void blur_row(Field f) {
  float *row = f.scratch + blockIdx.x * f.width;
  row[threadIdx.x] = 0.5f * f.now[blockIdx.x * f.width + threadIdx.x];
  int next = threadIdx.x + 1 < blockDim.x ? threadIdx.x + 1 : 0;
  f.now[blockIdx.x * f.width + threadIdx.x] = row[threadIdx.x] + row[next];
}
void run_blur_row(const float *host) {
  Field f = field(host, 256, 32);
  blur_row<<<32, 256>>>(f);
}

// right: a barrier between
__global__ void blur_row_waiting(Field f) {
  float *row = f.scratch + blockIdx.x * f.width;
  row[threadIdx.x] = 0.5f * f.now[blockIdx.x * f.width + threadIdx.x];
  __syncthreads();
  int next = threadIdx.x + 1 < blockDim.x ? threadIdx.x + 1 : 0;
  f.now[blockIdx.x * f.width + threadIdx.x] = row[threadIdx.x] + row[next];
}
void run_blur_row_waiting(const float *host) {
  Field f = field(host, 256, 32);
  blur_row_waiting<<<32, 256>>>(f);
}

// wrong (races): a relaxation in place updates each cell from cells that are updated too
__global__ void relax(float *u, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= w - 1 || y >= h - 1) return;
  u[y * w + x] = 0.25f * (u[y * w + x - 1] + u[y * w + x + 1] + u[(y - 1) * w + x] + u[(y + 1) * w + x]);
}
void run_relax(const float *host) {
  float *u;
  cudaMalloc(&u, 64 * 64 * sizeof(float));
  cudaMemcpy(u, host, 64 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  relax<<<dim3(4, 8), dim3(16, 8)>>>(u, 64, 64);
}

// right: cells of one colour, from those of the other
__global__ void relax_colour(float *u, int w, int h, int colour) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= w - 1 || y >= h - 1) return;
  if (((x + y) & 1) != colour) return;
  u[y * w + x] = 0.25f * (u[y * w + x - 1] + u[y * w + x + 1] + u[(y - 1) * w + x] + u[(y + 1) * w + x]);
}
void run_relax_colour(const float *host) {
  float *u;
  cudaMalloc(&u, 64 * 64 * sizeof(float));
  cudaMemcpy(u, host, 64 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  for (int colour = 0; colour < 2; ++colour) relax_colour<<<dim3(4, 8), dim3(16, 8)>>>(u, 64, 64, colour);
}

// wrong (races): four threads store their pixel to the one of the half image
__global__ void halve_image(unsigned char *small, const unsigned char *image, int w) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned y = blockIdx.y;
  small[(y >> 1) * (w >> 1) + (x >> 1)] = image[y * w + x];
}
void run_halve_image(const unsigned char *host) {
  unsigned char *small, *image;
  cudaMalloc(&small, 64 * 32);
  cudaMalloc(&image, 128 * 64);
  cudaMemcpy(image, host, 128 * 64, cudaMemcpyHostToDevice);
  halve_image<<<dim3(1, 64), 128>>>(small, image, 128);
}

// right: one of the four does
__global__ void halve_image_once(unsigned char *small, const unsigned char *image, int w) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned y = blockIdx.y;
  if ((x | y) & 1) return;
  small[(y >> 1) * (w >> 1) + (x >> 1)] = image[y * w + x];
}
void run_halve_image_once(const unsigned char *host) {
  unsigned char *small, *image;
  cudaMalloc(&small, 64 * 32);
  cudaMalloc(&image, 128 * 64);
  cudaMemcpy(image, host, 128 * 64, cudaMemcpyHostToDevice);
  halve_image_once<<<dim3(1, 64), 128>>>(small, image, 128);
}

// wrong (races): the instance has half as many rows as the block, and rows share a slot
template <typename T, int ROWS>
__global__ void fold_rows(T *out, const T *in) {
  __shared__ T tile[ROWS][32];
  tile[threadIdx.y % ROWS][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[(threadIdx.y + 1) % ROWS][threadIdx.x];
}
void run_fold_rows(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  fold_rows<float, 8><<<1, dim3(32, 16)>>>(out, in);
}

// right: the instance has a row for each
template <typename T, int ROWS>
__global__ void fold_all_rows(T *out, const T *in) {
  __shared__ T tile[ROWS][32];
  tile[threadIdx.y % ROWS][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[(threadIdx.y + 1) % ROWS][threadIdx.x];
}
void run_fold_all_rows(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  fold_all_rows<float, 16><<<1, dim3(32, 16)>>>(out, in);
}

// wrong (races): the leader's slot is read by its warp with nothing between
__global__ void reserve(int *out, int *next) {
  __shared__ int base[4];
  unsigned warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  if (lane == 0) base[warp] = atomicAdd(next, 32);
  out[base[warp] + lane] = threadIdx.x;
}
void run_reserve() {
  int *out, *next;
  cudaMalloc(&out, 1024 * sizeof(int));
  cudaMalloc(&next, sizeof(int));
  cudaMemset(next, 0, sizeof(int));
  reserve<<<8, 128>>>(out, next);
}

// right: the warp meets first
__global__ void reserve_and_meet(int *out, int *next) {
  __shared__ int base[4];
  unsigned warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  if (lane == 0) base[warp] = atomicAdd(next, 32);
  __syncwarp();
  out[base[warp] + lane] = threadIdx.x;
}
void run_reserve_and_meet() {
  int *out, *next;
  cudaMalloc(&out, 1024 * sizeof(int));
  cudaMalloc(&next, sizeof(int));
  cudaMemset(next, 0, sizeof(int));
  reserve_and_meet<<<8, 128>>>(out, next);
}

// wrong (races): volatile mail between blocks is no order
__global__ void pass_on(volatile float *mail, float *out) {
  if (threadIdx.x == 0) {
    mail[blockIdx.x] = 1.5f * blockIdx.x;
    out[blockIdx.x] = blockIdx.x > 0 ? mail[blockIdx.x - 1] : 0.0f;
  }
}
void run_pass_on() {
  float *mail, *out;
  cudaMalloc(&mail, 64 * sizeof(float));
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMemset(mail, 0, 64 * sizeof(float));
  pass_on<<<64, 32>>>(mail, out);
}

// right: of the block's own, it needs none
__global__ void pass_to_itself(volatile float *mail, float *out) {
  if (threadIdx.x == 0) {
    mail[blockIdx.x] = 1.5f * blockIdx.x;
    out[blockIdx.x] = blockIdx.x > 0 ? mail[blockIdx.x] : 0.0f;
  }
}
void run_pass_to_itself() {
  float *mail, *out;
  cudaMalloc(&mail, 64 * sizeof(float));
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMemset(mail, 0, 64 * sizeof(float));
  pass_to_itself<<<64, 32>>>(mail, out);
}

// wrong (races): a butterfly with one barrier a step, between read and write
__global__ void butterfly(float *out, const float *in) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll
  for (int m = 1; m < 256; m <<= 1) {
    float other = s[t ^ m];
    __syncthreads();
    s[t] += other;
  }
  out[blockIdx.x * 256 + t] = s[t];
}
void run_butterfly(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  butterfly<<<4, 256>>>(out, in);
}

// right: and one behind the write
__global__ void butterfly_of_two(float *out, const float *in) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll
  for (int m = 1; m < 256; m <<= 1) {
    float other = s[t ^ m];
    __syncthreads();
    s[t] += other;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = s[t];
}
void run_butterfly_of_two(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  butterfly_of_two<<<4, 256>>>(out, in);
}

// wrong (races): the pipeline's next stage is filled and used in the next turn, with no barrier between turns
__global__ void pipeline(float *out, const float *in, int steps) {
  __shared__ float stage[2][256];
  int t = threadIdx.x, now = 0;
  float sum = 0.0f;
  stage[0][t] = in[t];
  __syncthreads();
  for (int k = 1; k <= steps; ++k) {
    sum += stage[now][255 - t];
    if (k < steps) stage[now ^ 1][t] = in[k * 256 + t];
    now ^= 1;
  }
  out[t] = sum;
}
void run_pipeline(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 256 * sizeof(float));
  cudaMalloc(&in, 2048 * sizeof(float));
  cudaMemcpy(in, host, 2048 * sizeof(float), cudaMemcpyHostToDevice);
  pipeline<<<1, 256>>>(out, in, 8);
}

// right: turns end with a barrier
__global__ void pipeline_in_step(float *out, const float *in, int steps) {
  __shared__ float stage[2][256];
  int t = threadIdx.x, now = 0;
  float sum = 0.0f;
  stage[0][t] = in[t];
  __syncthreads();
  for (int k = 1; k <= steps; ++k) {
    sum += stage[now][255 - t];
    if (k < steps) stage[now ^ 1][t] = in[k * 256 + t];
    now ^= 1;
    __syncthreads();
  }
  out[t] = sum;
}
void run_pipeline_in_step(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 256 * sizeof(float));
  cudaMalloc(&in, 2048 * sizeof(float));
  cudaMemcpy(in, host, 2048 * sizeof(float), cudaMemcpyHostToDevice);
  pipeline_in_step<<<1, 256>>>(out, in, 8);
}

// wrong (races): bins are zeroed by plain stores while other warps already count
__global__ void count_bytes(unsigned *total, const unsigned char *in) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  atomicAdd(&bins[in[blockIdx.x * 256 + threadIdx.x]], 1u);
  __syncthreads();
  atomicAdd(&total[threadIdx.x], bins[threadIdx.x]);
}
void run_count_bytes(const unsigned char *host) {
  unsigned *total;
  unsigned char *in;
  cudaMalloc(&total, 256 * sizeof(unsigned));
  cudaMalloc(&in, 4096);
  cudaMemset(total, 0, 256 * sizeof(unsigned));
  cudaMemcpy(in, host, 4096, cudaMemcpyHostToDevice);
  count_bytes<<<16, 256>>>(total, in);
}

// right: all are zero first
__global__ void count_bytes_from_zero(unsigned *total, const unsigned char *in) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[in[blockIdx.x * 256 + threadIdx.x]], 1u);
  __syncthreads();
  atomicAdd(&total[threadIdx.x], bins[threadIdx.x]);
}
void run_count_bytes_from_zero(const unsigned char *host) {
  unsigned *total;
  unsigned char *in;
  cudaMalloc(&total, 256 * sizeof(unsigned));
  cudaMalloc(&in, 4096);
  cudaMemset(total, 0, 256 * sizeof(unsigned));
  cudaMemcpy(in, host, 4096, cudaMemcpyHostToDevice);
  count_bytes_from_zero<<<16, 256>>>(total, in);
}

// wrong (races): the maximum is compared with while others still raise it
__global__ void where_largest(int *best, int *place, const int *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = in[i];
  atomicMax(best, v);
  __syncthreads();
  if (v == *best) atomicMin(place, i);
}
void run_where_largest(const int *host) {
  int *best, *place, *in;
  cudaMalloc(&best, sizeof(int));
  cudaMalloc(&place, sizeof(int));
  cudaMalloc(&in, 2048 * sizeof(int));
  cudaMemset(best, 0, sizeof(int));
  cudaMemset(place, 0x7f, sizeof(int));
  cudaMemcpy(in, host, 2048 * sizeof(int), cudaMemcpyHostToDevice);
  where_largest<<<8, 256>>>(best, place, in);
}

// right: in a launch of its own
__global__ void find_largest(int *best, const int *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMax(best, in[i]);
}
__global__ void where_it_is(const int *best, int *place, const int *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[i] == *best) atomicMin(place, i);
}
void run_where_it_is(const int *host) {
  int *best, *place, *in;
  cudaMalloc(&best, sizeof(int));
  cudaMalloc(&place, sizeof(int));
  cudaMalloc(&in, 2048 * sizeof(int));
  cudaMemset(best, 0, sizeof(int));
  cudaMemset(place, 0x7f, sizeof(int));
  cudaMemcpy(in, host, 2048 * sizeof(int), cudaMemcpyHostToDevice);
  find_largest<<<8, 256>>>(best, in);
  where_it_is<<<8, 256>>>(best, place, in);
}

// wrong (races): the instance without barriers is launched for more than one warp
template <int THREADS, bool WAIT>
__global__ void rotate(int *out, const int *in) {
  __shared__ int s[THREADS];
  s[threadIdx.x] = in[blockIdx.x * THREADS + threadIdx.x];
  if constexpr (WAIT) __syncthreads();
  out[blockIdx.x * THREADS + threadIdx.x] = s[(threadIdx.x + 1) % THREADS];
}
void run_rotate(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 1024 * sizeof(int));
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMemcpy(in, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  rotate<128, false><<<8, 128>>>(out, in);
}

// right: the instance with one
template <int THREADS, bool WAIT>
__global__ void rotate_waiting(int *out, const int *in) {
  __shared__ int s[THREADS];
  s[threadIdx.x] = in[blockIdx.x * THREADS + threadIdx.x];
  if constexpr (WAIT) __syncthreads();
  out[blockIdx.x * THREADS + threadIdx.x] = s[(threadIdx.x + 1) % THREADS];
}
void run_rotate_waiting(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 1024 * sizeof(int));
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMemcpy(in, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  rotate_waiting<128, true><<<8, 128>>>(out, in);
}

// wrong (races): a union's second member overwrites the first, which others still read
union Scratch {
  float values[128];
  int keys[128];
};
__global__ void values_then_keys(float *out, int *ranks, const float *in) {
  __shared__ Scratch scratch;
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  scratch.values[t] = in[i];
  __syncthreads();
  out[i] = scratch.values[t ^ 64];
  scratch.keys[t] = i;
  __syncthreads();
  ranks[i] = scratch.keys[127 - t];
}
void run_values_then_keys(const float *host) {
  float *out, *in;
  int *ranks;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&ranks, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  values_then_keys<<<4, 128>>>(out, ranks, in);
}

// right: a barrier parts the uses of the two
union Shared {
  float values[128];
  int keys[128];
};
__global__ void values_and_keys(float *out, int *ranks, const float *in) {
  __shared__ Shared scratch;
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  scratch.values[t] = in[i];
  __syncthreads();
  out[i] = scratch.values[t ^ 64];
  __syncthreads();
  scratch.keys[t] = i;
  __syncthreads();
  ranks[i] = scratch.keys[127 - t];
}
void run_values_and_keys(const float *host) {
  float *out, *in;
  int *ranks;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&ranks, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  values_and_keys<<<4, 128>>>(out, ranks, in);
}

// wrong (races): two parts of the dynamic array overlap by one element
__global__ void two_parts(float *out, const float *in) {
  extern __shared__ float memory[];
  float *first = memory, *second = memory + blockDim.x - 1;
  int t = threadIdx.x;
  first[t] = in[t];
  second[t] = in[blockDim.x + t];
  __syncthreads();
  out[t] = first[t] * second[blockDim.x - 1 - t];
}
void run_two_parts(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 192 * sizeof(float));
  cudaMalloc(&in, 384 * sizeof(float));
  cudaMemcpy(in, host, 384 * sizeof(float), cudaMemcpyHostToDevice);
  two_parts<<<1, 192, 2 * 192 * sizeof(float)>>>(out, in);
}

// right: they lie side by side
__global__ void two_parts_apart(float *out, const float *in) {
  extern __shared__ float memory[];
  float *first = memory, *second = memory + blockDim.x;
  int t = threadIdx.x;
  first[t] = in[t];
  second[t] = in[blockDim.x + t];
  __syncthreads();
  out[t] = first[t] * second[blockDim.x - 1 - t];
}
void run_two_parts_apart(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 192 * sizeof(float));
  cudaMalloc(&in, 384 * sizeof(float));
  cudaMemcpy(in, host, 384 * sizeof(float), cudaMemcpyHostToDevice);
  two_parts_apart<<<1, 192, 2 * 192 * sizeof(float)>>>(out, in);
}

// wrong (races): half a warp is waited for, and the value comes from the other half
__global__ void across_halves(float *out, const float *in) {
  __shared__ float s[32];
  auto half = cg::tiled_partition<16>(cg::this_thread_block());
  s[threadIdx.x] = in[threadIdx.x];
  half.sync();
  out[threadIdx.x] = s[threadIdx.x ^ 16];
}
void run_across_halves(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMalloc(&in, 32 * sizeof(float));
  cudaMemcpy(in, host, 32 * sizeof(float), cudaMemcpyHostToDevice);
  across_halves<<<1, 32>>>(out, in);
}

// right: it comes from the own half
__global__ void within_halves(float *out, const float *in) {
  __shared__ float s[32];
  auto half = cg::tiled_partition<16>(cg::this_thread_block());
  s[threadIdx.x] = in[threadIdx.x];
  half.sync();
  out[threadIdx.x] = s[threadIdx.x ^ 8];
}
void run_within_halves(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMalloc(&in, 32 * sizeof(float));
  cudaMemcpy(in, host, 32 * sizeof(float), cudaMemcpyHostToDevice);
  within_halves<<<1, 32>>>(out, in);
}

// wrong (races): four floats are stored at once and read one by one by other warps
__global__ void unpack(float *out, const float4 *in) {
  __shared__ float4 packed[64];
  packed[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  const float *flat = reinterpret_cast<const float *>(packed);
  for (int j = threadIdx.x; j < 256; j += 64) out[blockIdx.x * 256 + j] = flat[j];
}
void run_unpack(const float *host) {
  float *out;
  float4 *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 256 * sizeof(float4));
  cudaMemcpy(in, host, 256 * sizeof(float4), cudaMemcpyHostToDevice);
  unpack<<<4, 64>>>(out, in);
}

// right: behind a barrier
__global__ void unpack_all(float *out, const float4 *in) {
  __shared__ float4 packed[64];
  packed[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  const float *flat = reinterpret_cast<const float *>(packed);
  for (int j = threadIdx.x; j < 256; j += 64) out[blockIdx.x * 256 + j] = flat[j];
}
void run_unpack_all(const float *host) {
  float *out;
  float4 *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 256 * sizeof(float4));
  cudaMemcpy(in, host, 256 * sizeof(float4), cudaMemcpyHostToDevice);
  unpack_all<<<4, 64>>>(out, in);
}

// wrong (races): a helper's scratch is written by its second call while slow warps read that of the first
__device__ float block_sum(float v) {
  static __shared__ float part[8];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0.0f;
  for (float p : part) sum += p;
  return sum;
}
__global__ void deviation(float *out, const float *in) {
  float v = in[blockIdx.x * 256 + threadIdx.x];
  float mean = block_sum(v) / 256.0f;
  float square = block_sum((v - mean) * (v - mean));
  out[blockIdx.x * 256 + threadIdx.x] = (v - mean) * rsqrtf(square);
}
void run_deviation(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  deviation<<<4, 256>>>(out, in);
}

// right: each call waits for the one before
__device__ float block_total(float v) {
  static __shared__ float part[8];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0.0f;
  for (float p : part) sum += p;
  return sum;
}
__global__ void deviation_in_turn(float *out, const float *in) {
  float v = in[blockIdx.x * 256 + threadIdx.x];
  float mean = block_total(v) / 256.0f;
  float square = block_total((v - mean) * (v - mean));
  out[blockIdx.x * 256 + threadIdx.x] = (v - mean) * rsqrtf(square);
}
void run_deviation_in_turn(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  deviation_in_turn<<<4, 256>>>(out, in);
}

// wrong (races): a matrix is transposed in place, each element by its own thread
__global__ void transpose_in_place(double *m, int n) {
  auto at = [&](int r, int c) -> double & { return m[r * n + c]; };
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n && c < n) at(c, r) = at(r, c);
}
void run_transpose_in_place(const double *host) {
  double *m;
  cudaMalloc(&m, 64 * 64 * sizeof(double));
  cudaMemcpy(m, host, 64 * 64 * sizeof(double), cudaMemcpyHostToDevice);
  transpose_in_place<<<dim3(4, 4), dim3(16, 16)>>>(m, 64);
}

// right: half of the threads exchange two
__global__ void transpose_by_exchange(double *m, int n) {
  auto at = [&](int r, int c) -> double & { return m[r * n + c]; };
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n && c < r) {
    double kept = at(c, r);
    at(c, r) = at(r, c);
    at(r, c) = kept;
  }
}
void run_transpose_by_exchange(const double *host) {
  double *m;
  cudaMalloc(&m, 64 * 64 * sizeof(double));
  cudaMemcpy(m, host, 64 * 64 * sizeof(double), cudaMemcpyHostToDevice);
  transpose_by_exchange<<<dim3(4, 4), dim3(16, 16)>>>(m, 64);
}
