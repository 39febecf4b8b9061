// Global memory that threads of a launch share with nothing to order them.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda_runtime.h>

// wrong (races): every thread adds to one word
__global__ void total(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[0] += in[i];
}
void run_total(const float *host) {
  float *sum, *in;
  cudaMalloc(&sum, sizeof(float));
  cudaMemset(sum, 0, sizeof(float));
  cudaMalloc(&in, 5000 * sizeof(float));
  cudaMemcpy(in, host, 5000 * sizeof(float), cudaMemcpyHostToDevice);
  total<<<(5000 + 127) / 128, 128>>>(sum, in, 5000);
}

// right: by atomics
__global__ void total_atomic(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, in[i]);
}
void run_total_atomic(const float *host) {
  float *sum, *in;
  cudaMalloc(&sum, sizeof(float));
  cudaMemset(sum, 0, sizeof(float));
  cudaMalloc(&in, 5000 * sizeof(float));
  cudaMemcpy(in, host, 5000 * sizeof(float), cudaMemcpyHostToDevice);
  total_atomic<<<(5000 + 127) / 128, 128>>>(sum, in, 5000);
}

// wrong (races): the smoothing is done in place, so that neighbours read old or new values
__global__ void smooth(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) x[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}
void run_smooth(const float *host) {
  float *x;
  cudaMalloc(&x, 4096 * sizeof(float));
  cudaMemcpy(x, host, 4096 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<16, 256>>>(x, 4096);
}

// right: out of place
__global__ void smooth_apart(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}
void run_smooth_apart(const float *host) {
  float *x, *y;
  cudaMalloc(&x, 4096 * sizeof(float));
  cudaMalloc(&y, 4096 * sizeof(float));
  cudaMemcpy(x, host, 4096 * sizeof(float), cudaMemcpyHostToDevice);
  smooth_apart<<<16, 256>>>(y, x, 4096);
}

// wrong (races): the stride is that of the block and not of the grid, so that blocks write the same elements
__global__ void squares(int *out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = out[i] * out[i];
}
void run_squares(const int *host) {
  int *out;
  cudaMalloc(&out, 2048 * sizeof(int));
  cudaMemcpy(out, host, 2048 * sizeof(int), cudaMemcpyHostToDevice);
  squares<<<4, 256>>>(out, 2048);
}

// right: that of the grid
__global__ void squares_of_grid(int *out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) out[i] = out[i] * out[i];
}
void run_squares_of_grid(const int *host) {
  int *out;
  cudaMalloc(&out, 2048 * sizeof(int));
  cudaMemcpy(out, host, 2048 * sizeof(int), cudaMemcpyHostToDevice);
  squares_of_grid<<<4, 256>>>(out, 2048);
}

// wrong (races): a row's result is written by each thread of its block with its own part
__global__ void row_sums(float *sums, const float *matrix, int columns) {
  float mine = 0.0f;
  for (int k = threadIdx.x; k < columns; k += blockDim.x) mine += matrix[blockIdx.x * columns + k];
  sums[blockIdx.x] = mine;
}
void run_row_sums(const float *host) {
  float *sums, *matrix;
  cudaMalloc(&sums, 40 * sizeof(float));
  cudaMalloc(&matrix, 40 * 300 * sizeof(float));
  cudaMemcpy(matrix, host, 40 * 300 * sizeof(float), cudaMemcpyHostToDevice);
  row_sums<<<40, 64>>>(sums, matrix, 300);
}

// right: the warp's sum is written by one lane
__global__ void row_sums_of_warp(float *sums, const float *matrix, int columns) {
  float mine = 0.0f;
  for (int k = threadIdx.x; k < columns; k += 32) mine += matrix[blockIdx.x * columns + k];
  for (int k = 16; k > 0; k /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, k);
  if (threadIdx.x == 0) sums[blockIdx.x] = mine;
}
void run_row_sums_of_warp(const float *host) {
  float *sums, *matrix;
  cudaMalloc(&sums, 40 * sizeof(float));
  cudaMalloc(&matrix, 40 * 300 * sizeof(float));
  cudaMemcpy(matrix, host, 40 * 300 * sizeof(float), cudaMemcpyHostToDevice);
  row_sums_of_warp<<<40, 32>>>(sums, matrix, 300);
}

// wrong (races): a block's first thread prepares what the block reads, with no barrier
__global__ void prepared(float *scratch, float *out, const float *in) {
  if (threadIdx.x == 0) scratch[blockIdx.x] = 2.0f * in[blockIdx.x];
  out[blockIdx.x * 128 + threadIdx.x] = scratch[blockIdx.x] + threadIdx.x;
}
void run_prepared(const float *host) {
  float *scratch, *out, *in;
  cudaMalloc(&scratch, 24 * sizeof(float));
  cudaMalloc(&out, 24 * 128 * sizeof(float));
  cudaMalloc(&in, 24 * sizeof(float));
  cudaMemcpy(in, host, 24 * sizeof(float), cudaMemcpyHostToDevice);
  prepared<<<24, 128>>>(scratch, out, in);
}

// right: a barrier orders a block's global memory too
__global__ void prepared_ordered(float *scratch, float *out, const float *in) {
  if (threadIdx.x == 0) scratch[blockIdx.x] = 2.0f * in[blockIdx.x];
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = scratch[blockIdx.x] + threadIdx.x;
}
void run_prepared_ordered(const float *host) {
  float *scratch, *out, *in;
  cudaMalloc(&scratch, 24 * sizeof(float));
  cudaMalloc(&out, 24 * 128 * sizeof(float));
  cudaMalloc(&in, 24 * sizeof(float));
  cudaMemcpy(in, host, 24 * sizeof(float), cudaMemcpyHostToDevice);
  prepared_ordered<<<24, 128>>>(scratch, out, in);
}

// wrong (races): a barrier of the block does not order blocks
__global__ void two_phases(float *a, float *b) {
  int i = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  a[i] = a[i] * 0.5f;
  __syncthreads();
  b[i] = a[n - 1 - i];
}
void run_two_phases(const float *host) {
  float *a, *b;
  cudaMalloc(&a, 640 * sizeof(float));
  cudaMalloc(&b, 640 * sizeof(float));
  cudaMemcpy(a, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  two_phases<<<10, 64>>>(a, b);
}

// right: two launches do
__global__ void phase_one(float *a) {
  int i = blockIdx.x * 64 + threadIdx.x;
  a[i] = a[i] * 0.5f;
}
__global__ void phase_two(const float *a, float *b) {
  int i = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  b[i] = a[n - 1 - i];
}
void run_phases(const float *host) {
  float *a, *b;
  cudaMalloc(&a, 640 * sizeof(float));
  cudaMalloc(&b, 640 * sizeof(float));
  cudaMemcpy(a, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  phase_one<<<10, 64>>>(a);
  phase_two<<<10, 64>>>(a, b);
}

// wrong (races): a bin is counted by plain additions of whoever comes
__global__ void bins_plain(int *bins, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) bins[keys[i] & 63] += 1;
}
void run_bins_plain(const int *host, int n) {
  int *bins, *keys;
  cudaMalloc(&bins, 64 * sizeof(int));
  cudaMemset(bins, 0, 64 * sizeof(int));
  cudaMalloc(&keys, n * sizeof(int));
  cudaMemcpy(keys, host, n * sizeof(int), cudaMemcpyHostToDevice);
  bins_plain<<<(n + 255) / 256, 256>>>(bins, keys, n);
}

// right: by atomics
__global__ void bins_atomic(int *bins, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(bins + (keys[i] & 63), 1);
}
void run_bins_atomic(const int *host, int n) {
  int *bins, *keys;
  cudaMalloc(&bins, 64 * sizeof(int));
  cudaMemset(bins, 0, 64 * sizeof(int));
  cudaMalloc(&keys, n * sizeof(int));
  cudaMemcpy(keys, host, n * sizeof(int), cudaMemcpyHostToDevice);
  bins_atomic<<<(n + 255) / 256, 256>>>(bins, keys, n);
}

// wrong (races): the counter is updated atomically and read plainly in the same launch
__global__ void tickets(int *counter, int *order) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(counter, 1);
  order[i] = *counter;
}
void run_tickets() {
  int *counter, *order;
  cudaMalloc(&counter, sizeof(int));
  cudaMemset(counter, 0, sizeof(int));
  cudaMalloc(&order, 1024 * sizeof(int));
  tickets<<<8, 128>>>(counter, order);
}

// right: what the atomic returns is used
__global__ void tickets_returned(int *counter, int *order) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  order[i] = atomicAdd(counter, 1);
}
void run_tickets_returned() {
  int *counter, *order;
  cudaMalloc(&counter, sizeof(int));
  cudaMemset(counter, 0, sizeof(int));
  cudaMalloc(&order, 1024 * sizeof(int));
  tickets_returned<<<8, 128>>>(counter, order);
}

// wrong (races): overlapping windows are written by two threads each
__global__ void spread(float *out, const float *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
  out[i + 1] = in[i] * 0.5f;
}
void run_spread(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 513 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  spread<<<4, 128>>>(out, in);
}

// right: windows that lie side by side
__global__ void spread_apart(float *out, const float *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[2 * i] = in[i];
  out[2 * i + 1] = in[i] * 0.5f;
}
void run_spread_apart(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  spread_apart<<<4, 128>>>(out, in);
}

// wrong (races): the second dimension of the grid writes the same row again
template <typename T>
__global__ void outer(T *out, const T *u, const T *v, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[x] = u[x] * v[y];
}
void run_outer(const float *hu, const float *hv) {
  float *out, *u, *v;
  cudaMalloc(&out, 100 * 100 * sizeof(float));
  cudaMalloc(&u, 100 * sizeof(float));
  cudaMalloc(&v, 100 * sizeof(float));
  cudaMemcpy(u, hu, 100 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(v, hv, 100 * sizeof(float), cudaMemcpyHostToDevice);
  outer<float><<<dim3(7, 7), dim3(16, 16)>>>(out, u, v, 100);
}

// right: a row of its own for each y
template <typename T>
__global__ void outer_rows(T *out, const T *u, const T *v, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = u[x] * v[y];
}
void run_outer_rows(const float *hu, const float *hv) {
  float *out, *u, *v;
  cudaMalloc(&out, 100 * 100 * sizeof(float));
  cudaMalloc(&u, 100 * sizeof(float));
  cudaMalloc(&v, 100 * sizeof(float));
  cudaMemcpy(u, hu, 100 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(v, hv, 100 * sizeof(float), cudaMemcpyHostToDevice);
  outer_rows<float><<<dim3(7, 7), dim3(16, 16)>>>(out, u, v, 100);
}

// wrong (races): a shift to the left in place
__global__ void shift_left(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) x[i] = x[i + 1];
}
void run_shift_left(const int *host) {
  int *x;
  cudaMalloc(&x, 1000 * sizeof(int));
  cudaMemcpy(x, host, 1000 * sizeof(int), cudaMemcpyHostToDevice);
  shift_left<<<4, 256>>>(x, 1000);
}

// right: one block reads all before it writes
__global__ void shift_left_ordered(int *x, int n) {
  int i = threadIdx.x;
  int next = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  if (i + 1 < n) x[i] = next;
}
void run_shift_left_ordered(const int *host) {
  int *x;
  cudaMalloc(&x, 1000 * sizeof(int));
  cudaMemcpy(x, host, 1000 * sizeof(int), cudaMemcpyHostToDevice);
  shift_left_ordered<<<1, 1024>>>(x, 1000);
}

// wrong (races): a device-wide result without an atomic
__device__ int g_best;
__global__ void best(const int *score, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) g_best = max(g_best, score[i]);
}
void run_best(const int *host) {
  int *score;
  cudaMalloc(&score, 900 * sizeof(int));
  cudaMemcpy(score, host, 900 * sizeof(int), cudaMemcpyHostToDevice);
  best<<<9, 100>>>(score, 900);
}

// right: atomicMax
__device__ int g_most;
__global__ void best_atomic(const int *score, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(&g_most, score[i]);
}
void run_best_atomic(const int *host) {
  int *score;
  cudaMalloc(&score, 900 * sizeof(int));
  cudaMemcpy(score, host, 900 * sizeof(int), cudaMemcpyHostToDevice);
  best_atomic<<<9, 100>>>(score, 900);
}

// wrong (races): the last block sums parts that nothing made visible in time
__global__ void parts_no_fence(float *parts, float *sum, const float *in) {
  __shared__ float mine[64];
  int t = threadIdx.x;
  mine[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
    for (int k = 0; k < 64; k++) s += mine[k];
    parts[blockIdx.x] = s;
    if (blockIdx.x == gridDim.x - 1) {
      float all = 0.0f;
      for (int b = 0; b < gridDim.x; b++) all += parts[b];
      *sum = all;
    }
  }
}
void run_parts_no_fence(const float *host) {
  float *parts, *sum, *in;
  cudaMalloc(&parts, 12 * sizeof(float));
  cudaMalloc(&sum, sizeof(float));
  cudaMalloc(&in, 12 * 64 * sizeof(float));
  cudaMemcpy(in, host, 12 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  parts_no_fence<<<12, 64>>>(parts, sum, in);
}

// right: the block that comes last by a counter does, behind fences
__device__ unsigned g_arrived;
__global__ void parts_fenced(float *parts, float *sum, const float *in) {
  __shared__ float mine[64];
  __shared__ bool is_last;
  int t = threadIdx.x;
  mine[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
    for (int k = 0; k < 64; k++) s += mine[k];
    parts[blockIdx.x] = s;
    __threadfence();
    is_last = atomicAdd(&g_arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && t == 0) {
    __threadfence();
    float all = 0.0f;
    for (int b = 0; b < gridDim.x; b++) all += ((volatile float *)parts)[b];
    *sum = all;
    g_arrived = 0;
  }
}
void run_parts_fenced(const float *host) {
  float *parts, *sum, *in;
  cudaMalloc(&parts, 12 * sizeof(float));
  cudaMalloc(&sum, sizeof(float));
  cudaMalloc(&in, 12 * 64 * sizeof(float));
  cudaMemcpy(in, host, 12 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  parts_fenced<<<12, 64>>>(parts, sum, in);
}

// wrong (races): tiles of two blocks overlap by one column
__global__ void tiles_overlap(float *image, int width) {
  int x = blockIdx.x * 31 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  image[y * width + x] = image[y * width + x] * 1.5f + blockIdx.x;
}
void run_tiles_overlap(const float *host) {
  float *image;
  cudaMalloc(&image, 128 * 64 * sizeof(float));
  cudaMemcpy(image, host, 128 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  tiles_overlap<<<dim3(4, 8), dim3(32, 8)>>>(image, 128);
}

// right: they do not
__global__ void tiles_apart(float *image, int width) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  image[y * width + x] = image[y * width + x] * 1.5f + blockIdx.x;
}
void run_tiles_apart(const float *host) {
  float *image;
  cudaMalloc(&image, 128 * 64 * sizeof(float));
  cudaMemcpy(image, host, 128 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  tiles_apart<<<dim3(4, 8), dim3(32, 8)>>>(image, 128);
}

// right: all threads store one number, and the whole grid waits before it is read
__global__ void __launch_bounds__(128) converged(int *flag, int *out, const int *in) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (in[i] > 100) *flag = 1;
  cooperative_groups::this_grid().sync();
  out[i] = *flag;
}
void run_converged(const int *host) {
  int *flag, *out, *in;
  cudaMalloc(&flag, sizeof(int));
  cudaMemset(flag, 0, sizeof(int));
  cudaMalloc(&out, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(int));
  cudaMemcpy(in, host, 512 * sizeof(int), cudaMemcpyHostToDevice);
  void *given[] = {&flag, &out, &in};
  cudaLaunchCooperativeKernel((void *)converged, dim3(4), dim3(128), given, 0, 0);
}

// wrong (races): nothing waits
__global__ void unconverged(int *flag, int *out, const int *in) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (threadIdx.x == 0) flag[blockIdx.x] = in[i];
  out[i] = flag[(blockIdx.x + 1) % gridDim.x];
}
void run_unconverged(const int *host) {
  int *flag, *out, *in;
  cudaMalloc(&flag, 4 * sizeof(int));
  cudaMalloc(&out, 512 * sizeof(int));
  cudaMalloc(&in, 512 * sizeof(int));
  cudaMemcpy(in, host, 512 * sizeof(int), cudaMemcpyHostToDevice);
  unconverged<<<4, 128>>>(flag, out, in);
}
