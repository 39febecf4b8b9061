// Shared memory that threads of different warps use with no barrier between. See README.md for the labels.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__device__ float sum_of_warp(float x) {
  for (int k = 16; k > 0; k /= 2) x += __shfl_down_sync(0xffffffffu, x, k);
  return x;
}

__device__ void put(float *to, float value) { to[threadIdx.x] = value; }

__device__ float behind(const float *from, int by) { return from[(threadIdx.x + by) % 96]; }

#define TILE 16

struct Cell {
  float height, flow;
};

// wrong (races): the right neighbour's element is read before its warp has written it
__global__ void slope(float *out, const float *in) {
  __shared__ float line[257];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  line[t] = in[i];
  if (t == 0) line[256] = 0.0f;
  out[i] = line[t + 1] - line[t];
}
void run_slope(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 32 * 256 * sizeof(float));
  cudaMalloc(&in, 32 * 256 * sizeof(float));
  cudaMemcpy(in, host, 32 * 256 * sizeof(float), cudaMemcpyHostToDevice);
  slope<<<32, 256>>>(out, in);
}

// right: a barrier stands between
__global__ void slope_ordered(float *out, const float *in) {
  __shared__ float line[257];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  line[t] = in[i];
  if (t == 0) line[256] = 0.0f;
  __syncthreads();
  out[i] = line[t + 1] - line[t];
}
void run_slope_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 32 * 256 * sizeof(float));
  cudaMalloc(&in, 32 * 256 * sizeof(float));
  cudaMemcpy(in, host, 32 * 256 * sizeof(float), cudaMemcpyHostToDevice);
  slope_ordered<<<32, 256>>>(out, in);
}

// wrong (races): the tree's steps of 64 and more threads follow each other without a barrier
template <typename T, int kThreads>
__global__ void tree_sum(T *sums, const T *values) {
  __shared__ T part[kThreads];
  part[threadIdx.x] = values[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step)
      part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0)
    sums[blockIdx.x] = part[0];
}
void run_tree_sum(const double *host) {
  double *sums, *values;
  cudaMalloc(&sums, 16 * sizeof(double));
  cudaMalloc(&values, 16 * 256 * sizeof(double));
  cudaMemcpy(values, host, 16 * 256 * sizeof(double), cudaMemcpyHostToDevice);
  tree_sum<double, 256><<<16, 256>>>(sums, values);
}

// right: each step ends with a barrier
template <typename T, int kThreads>
__global__ void tree_sum_ordered(T *sums, const T *values) {
  __shared__ T part[kThreads];
  part[threadIdx.x] = values[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step >>= 1) {
    if (threadIdx.x < step)
      part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    sums[blockIdx.x] = part[0];
}
void run_tree_sum_ordered(const double *host) {
  double *sums, *values;
  cudaMalloc(&sums, 16 * sizeof(double));
  cudaMalloc(&values, 16 * 256 * sizeof(double));
  cudaMemcpy(values, host, 16 * 256 * sizeof(double), cudaMemcpyHostToDevice);
  tree_sum_ordered<double, 256><<<16, 256>>>(sums, values);
}

// wrong (races): the next tile overwrites this one while other warps still read it
__global__ void product(const float *a, const float *b, float *c, int width) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int from = 0; from < width; from += TILE) {
    left[threadIdx.y][threadIdx.x] = a[row * width + from + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(from + threadIdx.y) * width + column];
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      sum += left[threadIdx.y][k] * right[k][threadIdx.x];
  }
  c[row * width + column] = sum;
}
void run_product(const float *ha, const float *hb) {
  const int width = 128;
  float *a, *b, *c;
  cudaMalloc(&a, width * width * sizeof(float));
  cudaMalloc(&b, width * width * sizeof(float));
  cudaMalloc(&c, width * width * sizeof(float));
  cudaMemcpy(a, ha, width * width * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, hb, width * width * sizeof(float), cudaMemcpyHostToDevice);
  product<<<dim3(width / TILE, width / TILE), dim3(TILE, TILE)>>>(a, b, c, width);
}

// right: a second barrier ends the use of the tile
__global__ void product_ordered(const float *a, const float *b, float *c, int width) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int from = 0; from < width; from += TILE) {
    left[threadIdx.y][threadIdx.x] = a[row * width + from + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(from + threadIdx.y) * width + column];
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * width + column] = sum;
}
void run_product_ordered(const float *ha, const float *hb) {
  const int width = 128;
  float *a, *b, *c;
  cudaMalloc(&a, width * width * sizeof(float));
  cudaMalloc(&b, width * width * sizeof(float));
  cudaMalloc(&c, width * width * sizeof(float));
  cudaMemcpy(a, ha, width * width * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, hb, width * width * sizeof(float), cudaMemcpyHostToDevice);
  product_ordered<<<dim3(width / TILE, width / TILE), dim3(TILE, TILE)>>>(a, b, c, width);
}

// wrong (races): all threads write their own number to one word
__global__ void last_one(int *found, const int *keys, int key, int n) {
  __shared__ int place;
  if (threadIdx.x == 0) place = -1;
  __syncthreads();
  place = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0 && keys[blockIdx.x] == key) found[blockIdx.x] = place;
}
void run_last_one(const int *host, int key) {
  int *found, *keys;
  cudaMalloc(&found, 64 * sizeof(int));
  cudaMalloc(&keys, 64 * sizeof(int));
  cudaMemcpy(keys, host, 64 * sizeof(int), cudaMemcpyHostToDevice);
  last_one<<<64, 128>>>(found, keys, key, 64);
}

// right: what they write is one and the same number
__global__ void any_one(int *found, const int *keys, int key) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (keys[blockIdx.x * 128 + threadIdx.x] == key) flag = 1;
  __syncthreads();
  if (threadIdx.x == 0) found[blockIdx.x] = flag;
}
void run_any_one(const int *host, int key) {
  int *found, *keys;
  cudaMalloc(&found, 64 * sizeof(int));
  cudaMalloc(&keys, 64 * 128 * sizeof(int));
  cudaMemcpy(keys, host, 64 * 128 * sizeof(int), cudaMemcpyHostToDevice);
  any_one<<<64, 128>>>(found, keys, key);
}

// wrong (races): two halves of the block write the same 64 slots with other values
__global__ void fold(float *out, const float *in) {
  __shared__ float slot[64];
  const unsigned t = threadIdx.x;
  slot[t % 64] = in[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) out[blockIdx.x * 64 + t] = slot[t];
}
void run_fold(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 16 * 64 * sizeof(float));
  cudaMalloc(&in, 16 * 128 * sizeof(float));
  cudaMemcpy(in, host, 16 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  fold<<<16, 128>>>(out, in);
}

// right: the second half adds after a barrier
__global__ void fold_ordered(float *out, const float *in) {
  __shared__ float slot[64];
  const unsigned t = threadIdx.x;
  if (t < 64) slot[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  if (t >= 64) slot[t - 64] += in[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) out[blockIdx.x * 64 + t] = slot[t];
}
void run_fold_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 16 * 64 * sizeof(float));
  cudaMalloc(&in, 16 * 128 * sizeof(float));
  cudaMemcpy(in, host, 16 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  fold_ordered<<<16, 128>>>(out, in);
}

// wrong (races): bins are counted by plain additions
__global__ void histogram(unsigned *bins, const unsigned char *pixels, int n) {
  __shared__ unsigned count[256];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    count[pixels[i]]++;
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], count[threadIdx.x]);
}
void run_histogram(const unsigned char *host, int n) {
  unsigned *bins;
  unsigned char *pixels;
  cudaMalloc(&bins, 256 * sizeof(unsigned));
  cudaMemset(bins, 0, 256 * sizeof(unsigned));
  cudaMalloc(&pixels, n);
  cudaMemcpy(pixels, host, n, cudaMemcpyHostToDevice);
  histogram<<<8, 256>>>(bins, pixels, n);
}

// right: by atomic ones
__global__ void histogram_atomic(unsigned *bins, const unsigned char *pixels, int n) {
  __shared__ unsigned count[256];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&count[pixels[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], count[threadIdx.x]);
}
void run_histogram_atomic(const unsigned char *host, int n) {
  unsigned *bins;
  unsigned char *pixels;
  cudaMalloc(&bins, 256 * sizeof(unsigned));
  cudaMemset(bins, 0, 256 * sizeof(unsigned));
  cudaMalloc(&pixels, n);
  cudaMemcpy(pixels, host, n, cudaMemcpyHostToDevice);
  histogram_atomic<<<8, 256>>>(bins, pixels, n);
}

// wrong (races): the total is read while other warps still add to it
__global__ void scaled_by_total(float *out, const float *in) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  float mine = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&total, mine);
  out[blockIdx.x * blockDim.x + threadIdx.x] = mine / total;
}
void run_scaled_by_total(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * 192 * sizeof(float));
  cudaMalloc(&in, 64 * 192 * sizeof(float));
  cudaMemcpy(in, host, 64 * 192 * sizeof(float), cudaMemcpyHostToDevice);
  scaled_by_total<<<64, 192>>>(out, in);
}

// right: it is read behind a barrier
__global__ void scaled_by_total_ordered(float *out, const float *in) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  float mine = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&total, mine);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = mine / total;
}
void run_scaled_by_total_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * 192 * sizeof(float));
  cudaMalloc(&in, 64 * 192 * sizeof(float));
  cudaMemcpy(in, host, 64 * 192 * sizeof(float), cudaMemcpyHostToDevice);
  scaled_by_total_ordered<<<64, 192>>>(out, in);
}

// wrong (races): volatile orders nothing between warps, and 64 threads are two of them
__global__ void volatile_tail(float *sums, const float *in) {
  extern __shared__ float buffer[];
  volatile float *v = buffer;
  int t = threadIdx.x;
  v[t] = in[blockIdx.x * blockDim.x + t] + in[(blockIdx.x + gridDim.x) * blockDim.x + t];
  __syncthreads();
  if (t < 64) {
    v[t] += v[t + 64];
    v[t] += v[t + 32];
  }
  __syncthreads();
  if (t == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 32; k++) sum += v[k];
    sums[blockIdx.x] = sum;
  }
}
void run_volatile_tail(const float *host) {
  float *sums, *in;
  cudaMalloc(&sums, 4 * sizeof(float));
  cudaMalloc(&in, 8 * 128 * sizeof(float));
  cudaMemcpy(in, host, 8 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  volatile_tail<<<4, 128, 128 * sizeof(float)>>>(sums, in);
}

// right: a barrier parts the two halvings
__global__ void volatile_tail_ordered(float *sums, const float *in) {
  extern __shared__ float buffer[];
  volatile float *v = buffer;
  int t = threadIdx.x;
  v[t] = in[blockIdx.x * blockDim.x + t] + in[(blockIdx.x + gridDim.x) * blockDim.x + t];
  __syncthreads();
  if (t < 64) v[t] += v[t + 64];
  __syncthreads();
  if (t < 32) v[t] += v[t + 32];
  __syncthreads();
  if (t == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 32; k++) sum += v[k];
    sums[blockIdx.x] = sum;
  }
}
void run_volatile_tail_ordered(const float *host) {
  float *sums, *in;
  cudaMalloc(&sums, 4 * sizeof(float));
  cudaMalloc(&in, 8 * 128 * sizeof(float));
  cudaMemcpy(in, host, 8 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  volatile_tail_ordered<<<4, 128, 128 * sizeof(float)>>>(sums, in);
}

// wrong (races): in the butterfly's later steps partners are in other warps
__global__ void butterfly(float *data) {
  __shared__ float wing[128];
  int t = threadIdx.x;
  wing[t] = data[blockIdx.x * 128 + t];
  __syncthreads();
  for (int half = 1; half < 128; half *= 2) {
    float mine = wing[t], theirs = wing[t ^ half];
    wing[t] = (t & half) ? theirs - mine : mine + theirs;
    __syncthreads();
  }
  data[blockIdx.x * 128 + t] = wing[t];
}
void run_butterfly(const float *host) {
  float *data;
  cudaMalloc(&data, 32 * 128 * sizeof(float));
  cudaMemcpy(data, host, 32 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  butterfly<<<32, 128>>>(data);
}

// right: all have read before anyone writes
__global__ void butterfly_ordered(float *data) {
  __shared__ float wing[128];
  int t = threadIdx.x;
  wing[t] = data[blockIdx.x * 128 + t];
  __syncthreads();
  for (int half = 1; half < 128; half *= 2) {
    float mine = wing[t], theirs = wing[t ^ half];
    __syncthreads();
    wing[t] = (t & half) ? theirs - mine : mine + theirs;
    __syncthreads();
  }
  data[blockIdx.x * 128 + t] = wing[t];
}
void run_butterfly_ordered(const float *host) {
  float *data;
  cudaMalloc(&data, 32 * 128 * sizeof(float));
  cudaMemcpy(data, host, 32 * 128 * sizeof(float), cudaMemcpyHostToDevice);
  butterfly_ordered<<<32, 128>>>(data);
}

// wrong (races): the scan reads and writes one buffer within a step
__global__ void scan_in_place(int *out, const int *in) {
  __shared__ int run[256];
  const int t = threadIdx.x;
  run[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int reach = 1; reach < 256; reach <<= 1) {
    if (t >= reach) run[t] += run[t - reach];
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = run[t];
}
void run_scan_in_place(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 8 * 256 * sizeof(int));
  cudaMalloc(&in, 8 * 256 * sizeof(int));
  cudaMemcpy(in, host, 8 * 256 * sizeof(int), cudaMemcpyHostToDevice);
  scan_in_place<<<8, 256>>>(out, in);
}

// right: two buffers take turns
__global__ void scan_two_buffers(int *out, const int *in) {
  __shared__ int run[2][256];
  const int t = threadIdx.x;
  int now = 0;
  run[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int reach = 1; reach < 256; reach <<= 1) {
    run[1 - now][t] = run[now][t] + (t >= reach ? run[now][t - reach] : 0);
    now = 1 - now;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = run[now][t];
}
void run_scan_two_buffers(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 8 * 256 * sizeof(int));
  cudaMalloc(&in, 8 * 256 * sizeof(int));
  cudaMemcpy(in, host, 8 * 256 * sizeof(int), cudaMemcpyHostToDevice);
  scan_two_buffers<<<8, 256>>>(out, in);
}

// wrong (races): the first warp's result is used by all without a barrier
__global__ void centred(float *out, const float *in) {
  __shared__ float parts[8];
  __shared__ float mean;
  int t = threadIdx.x;
  float x = in[blockIdx.x * 256 + t];
  float s = sum_of_warp(x);
  if (t % 32 == 0) parts[t / 32] = s;
  __syncthreads();
  if (t < 32) {
    s = sum_of_warp(t < 8 ? parts[t] : 0.0f);
    if (t == 0) mean = s / 256.0f;
  }
  out[blockIdx.x * 256 + t] = x - mean;
}
void run_centred(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 20 * 256 * sizeof(float));
  cudaMalloc(&in, 20 * 256 * sizeof(float));
  cudaMemcpy(in, host, 20 * 256 * sizeof(float), cudaMemcpyHostToDevice);
  centred<<<20, 256>>>(out, in);
}

// right: all wait for the first warp
__global__ void centred_ordered(float *out, const float *in) {
  __shared__ float parts[8];
  __shared__ float mean;
  int t = threadIdx.x;
  float x = in[blockIdx.x * 256 + t];
  float s = sum_of_warp(x);
  if (t % 32 == 0) parts[t / 32] = s;
  __syncthreads();
  if (t < 32) {
    s = sum_of_warp(t < 8 ? parts[t] : 0.0f);
    if (t == 0) mean = s / 256.0f;
  }
  __syncthreads();
  out[blockIdx.x * 256 + t] = x - mean;
}
void run_centred_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 20 * 256 * sizeof(float));
  cudaMalloc(&in, 20 * 256 * sizeof(float));
  cudaMemcpy(in, host, 20 * 256 * sizeof(float), cudaMemcpyHostToDevice);
  centred_ordered<<<20, 256>>>(out, in);
}

// wrong (races): the transposed tile is read as soon as the own rows are in
__global__ void turn(float *out, const float *in, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8) {
    int y = blockIdx.y * 32 + k;
    if (x < columns && y < rows) tile[k][threadIdx.x] = in[y * columns + x];
  }
  x = blockIdx.y * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8) {
    int y = blockIdx.x * 32 + k;
    if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][k];
  }
}
void run_turn(const float *host, int rows, int columns) {
  float *out, *in;
  cudaMalloc(&out, rows * columns * sizeof(float));
  cudaMalloc(&in, rows * columns * sizeof(float));
  cudaMemcpy(in, host, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  turn<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(out, in, rows, columns);
}

// right: the whole tile is in first
__global__ void turn_ordered(float *out, const float *in, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8) {
    int y = blockIdx.y * 32 + k;
    if (x < columns && y < rows) tile[k][threadIdx.x] = in[y * columns + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8) {
    int y = blockIdx.x * 32 + k;
    if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][k];
  }
}
void run_turn_ordered(const float *host, int rows, int columns) {
  float *out, *in;
  cudaMalloc(&out, rows * columns * sizeof(float));
  cudaMalloc(&in, rows * columns * sizeof(float));
  cudaMemcpy(in, host, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  turn_ordered<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(out, in, rows, columns);
}

// wrong (races): the halo's cells are written by the first warp and read by the last, with the barrier in front of both
__global__ void relax(Cell *cells, int n) {
  __shared__ Cell strip[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  strip[threadIdx.x + 1] = cells[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    strip[0].height = blockIdx.x > 0 ? cells[i - 1].height : 0.0f;
    strip[129].height = i + 128 < n ? cells[i + 128].height : 0.0f;
  }
  float mean = 0.5f * (strip[threadIdx.x].height + strip[threadIdx.x + 2].height);
  cells[n + i].height = mean;
  cells[n + i].flow = strip[threadIdx.x + 1].flow;
}
void run_relax(const Cell *host) {
  Cell *cells;
  cudaMalloc(&cells, 2 * 1280 * sizeof(Cell));
  cudaMemcpy(cells, host, 2 * 1280 * sizeof(Cell), cudaMemcpyHostToDevice);
  relax<<<10, 128>>>(cells, 1280);
}

// right: the barrier stands behind both
__global__ void relax_ordered(Cell *cells, int n) {
  __shared__ Cell strip[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  strip[threadIdx.x + 1] = cells[i];
  if (threadIdx.x == 0) {
    strip[0].height = blockIdx.x > 0 ? cells[i - 1].height : 0.0f;
    strip[129].height = i + 128 < n ? cells[i + 128].height : 0.0f;
  }
  __syncthreads();
  float mean = 0.5f * (strip[threadIdx.x].height + strip[threadIdx.x + 2].height);
  cells[n + i].height = mean;
  cells[n + i].flow = strip[threadIdx.x + 1].flow;
}
void run_relax_ordered(const Cell *host) {
  Cell *cells;
  cudaMalloc(&cells, 2 * 1280 * sizeof(Cell));
  cudaMemcpy(cells, host, 2 * 1280 * sizeof(Cell), cudaMemcpyHostToDevice);
  relax_ordered<<<10, 128>>>(cells, 1280);
}

// wrong (races): a warp is waited for where the whole block has written
__global__ void groups(int *out, const int *in) {
  __shared__ int board[256];
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int t = block.thread_rank();
  board[t] = in[blockIdx.x * 256 + t] * 3;
  warp.sync();
  out[blockIdx.x * 256 + t] = board[255 - t];
}
void run_groups(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 12 * 256 * sizeof(int));
  cudaMalloc(&in, 12 * 256 * sizeof(int));
  cudaMemcpy(in, host, 12 * 256 * sizeof(int), cudaMemcpyHostToDevice);
  groups<<<12, 256>>>(out, in);
}

// right: the block is waited for
__global__ void groups_ordered(int *out, const int *in) {
  __shared__ int board[256];
  cg::thread_block block = cg::this_thread_block();
  int t = block.thread_rank();
  board[t] = in[blockIdx.x * 256 + t] * 3;
  block.sync();
  out[blockIdx.x * 256 + t] = board[255 - t];
}
void run_groups_ordered(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 12 * 256 * sizeof(int));
  cudaMalloc(&in, 12 * 256 * sizeof(int));
  cudaMemcpy(in, host, 12 * 256 * sizeof(int), cudaMemcpyHostToDevice);
  groups_ordered<<<12, 256>>>(out, in);
}

// wrong (races): a ring of two slots, and one barrier a turn in front of the load
__global__ void ring(float *out, const float *in, int turns) {
  __shared__ float slot[2][64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < turns; k++) {
    __syncthreads();
    slot[k & 1][t] = in[(blockIdx.x * turns + k) * 64 + t];
    sum += slot[k & 1][63 - t];
  }
  out[blockIdx.x * 64 + t] = sum;
}
void run_ring(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 4 * 64 * sizeof(float));
  cudaMalloc(&in, 4 * 10 * 64 * sizeof(float));
  cudaMemcpy(in, host, 4 * 10 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  ring<<<4, 64>>>(out, in, 10);
}

// right: the barrier stands behind it, and two slots keep turns apart
__global__ void ring_ordered(float *out, const float *in, int turns) {
  __shared__ float slot[2][64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < turns; k++) {
    slot[k & 1][t] = in[(blockIdx.x * turns + k) * 64 + t];
    __syncthreads();
    sum += slot[k & 1][63 - t];
  }
  out[blockIdx.x * 64 + t] = sum;
}
void run_ring_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 4 * 64 * sizeof(float));
  cudaMalloc(&in, 4 * 10 * 64 * sizeof(float));
  cudaMemcpy(in, host, 4 * 10 * 64 * sizeof(float), cudaMemcpyHostToDevice);
  ring_ordered<<<4, 64>>>(out, in, 10);
}

// wrong (races): a helper that writes for the caller keeps its barrier for itself
__global__ void rotated(float *out, const float *in, int by) {
  __shared__ float drum[96];
  int i = blockIdx.x * 96 + threadIdx.x;
  put(drum, in[i]);
  out[i] = behind(drum, 48);
}
void run_rotated(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 9 * 96 * sizeof(float));
  cudaMalloc(&in, 9 * 96 * sizeof(float));
  cudaMemcpy(in, host, 9 * 96 * sizeof(float), cudaMemcpyHostToDevice);
  rotated<<<9, 96>>>(out, in, 48);
}

// right: the caller waits between its helpers
__global__ void rotated_ordered(float *out, const float *in, int by) {
  __shared__ float drum[96];
  int i = blockIdx.x * 96 + threadIdx.x;
  put(drum, in[i]);
  __syncthreads();
  out[i] = behind(drum, 48);
}
void run_rotated_ordered(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 9 * 96 * sizeof(float));
  cudaMalloc(&in, 9 * 96 * sizeof(float));
  cudaMemcpy(in, host, 9 * 96 * sizeof(float), cudaMemcpyHostToDevice);
  rotated_ordered<<<9, 96>>>(out, in, 48);
}

// wrong (races): the row's maximum is reused for its sum, and slow warps still read the maximum
__global__ void softmax(float *out, const float *in, int columns) {
  __shared__ float part[128];
  int t = threadIdx.x;
  const float *row = in + blockIdx.x * columns;
  float most = -1e30f;
  for (int k = t; k < columns; k += 128) most = fmaxf(most, row[k]);
  part[t] = most;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) part[t] = fmaxf(part[t], part[t + step]);
    __syncthreads();
  }
  most = part[0];
  float sum = 0.0f;
  for (int k = t; k < columns; k += 128) sum += expf(row[k] - most);
  part[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  for (int k = t; k < columns; k += 128) out[blockIdx.x * columns + k] = expf(row[k] - most) / part[0];
}
void run_softmax(const float *host, int rows, int columns) {
  float *out, *in;
  cudaMalloc(&out, rows * columns * sizeof(float));
  cudaMalloc(&in, rows * columns * sizeof(float));
  cudaMemcpy(in, host, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  softmax<<<rows, 128>>>(out, in, columns);
}

// right: a barrier stands between the last use of the maximum and the first of the sum
__global__ void softmax_ordered(float *out, const float *in, int columns) {
  __shared__ float part[128];
  int t = threadIdx.x;
  const float *row = in + blockIdx.x * columns;
  float most = -1e30f;
  for (int k = t; k < columns; k += 128) most = fmaxf(most, row[k]);
  part[t] = most;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) part[t] = fmaxf(part[t], part[t + step]);
    __syncthreads();
  }
  most = part[0];
  __syncthreads();
  float sum = 0.0f;
  for (int k = t; k < columns; k += 128) sum += expf(row[k] - most);
  part[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  for (int k = t; k < columns; k += 128) out[blockIdx.x * columns + k] = expf(row[k] - most) / part[0];
}
void run_softmax_ordered(const float *host, int rows, int columns) {
  float *out, *in;
  cudaMalloc(&out, rows * columns * sizeof(float));
  cudaMalloc(&in, rows * columns * sizeof(float));
  cudaMemcpy(in, host, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  softmax_ordered<<<rows, 128>>>(out, in, columns);
}
