// Accesses outside of arrays in the styles of larger programs: halos, constants, volumes in structs, sizes of long arrays.
#include <cuda_runtime.h>

static float *on_device(const float *host, size_t n) {
  float *x;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  return x;
}

// wrong (bounds): the tile has room for the halo of one side
template <int BLOCK, int RADIUS>
__global__ void smooth_line(float *out, const float *in, int n) {
  __shared__ float tile[BLOCK + RADIUS];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  tile[threadIdx.x + RADIUS] = i < n ? in[i] : 0.0f;
  if (threadIdx.x < RADIUS) {
    tile[threadIdx.x] = i >= RADIUS ? in[i - RADIUS] : 0.0f;
    tile[threadIdx.x + RADIUS + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0.0f;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int k = -RADIUS; k <= RADIUS; ++k) sum += tile[threadIdx.x + RADIUS + k];
  if (i < n) out[i] = sum / (2 * RADIUS + 1);
}
void run_smooth_line(const float *host, int n) {
  float *in = on_device(host, n), *out;
  cudaMalloc(&out, n * sizeof(float));
  smooth_line<256, 3><<<(n + 255) / 256, 256>>>(out, in, n);
}

// right: for both
template <int BLOCK, int RADIUS>
__global__ void smooth_wide_line(float *out, const float *in, int n) {
  __shared__ float tile[BLOCK + 2 * RADIUS];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  tile[threadIdx.x + RADIUS] = i < n ? in[i] : 0.0f;
  if (threadIdx.x < RADIUS) {
    tile[threadIdx.x] = i >= RADIUS && i - RADIUS < n ? in[i - RADIUS] : 0.0f;
    tile[threadIdx.x + RADIUS + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0.0f;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int k = -RADIUS; k <= RADIUS; ++k) sum += tile[threadIdx.x + RADIUS + k];
  if (i < n) out[i] = sum / (2 * RADIUS + 1);
}
void run_smooth_wide_line(const float *host, int n) {
  float *in = on_device(host, n), *out;
  cudaMalloc(&out, n * sizeof(float));
  smooth_wide_line<256, 3><<<(n + 255) / 256, 256>>>(out, in, n);
}

// wrong (bounds): nine taps of an array of eight
#define REACH 4
__constant__ float taps[2 * REACH];
__global__ void filter(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < REACH || i >= n - REACH) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = -REACH; k <= REACH; k++) sum = fmaf(taps[k + REACH], in[i + k], sum);
  out[i] = sum;
}
void run_filter(const float *host, const float *coefficients) {
  float *in = on_device(host, 4096), *out;
  cudaMalloc(&out, 4096 * sizeof(float));
  cudaMemcpyToSymbol(taps, coefficients, sizeof(taps));
  filter<<<32, 128>>>(out, in, 4096);
}

// right: of nine
#define HALF 4
__constant__ float nine_taps[2 * HALF + 1];
__global__ void filter_by_nine(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < HALF || i >= n - HALF) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = -HALF; k <= HALF; k++) sum = fmaf(nine_taps[k + HALF], in[i + k], sum);
  out[i] = sum;
}
void run_filter_by_nine(const float *host, const float *coefficients) {
  float *in = on_device(host, 4096), *out;
  cudaMalloc(&out, 4096 * sizeof(float));
  cudaMemcpyToSymbol(nine_taps, coefficients, sizeof(nine_taps));
  filter_by_nine<<<32, 128>>>(out, in, 4096);
}

// wrong (bounds): a smaller element is moved behind the end of the list of the largest
__global__ void four_largest(float *out, const float *in, int n) {
  float best[4];
  for (int k = 0; k < 4; ++k) best[k] = -INFINITY;
  const float *row = in + (blockIdx.x * blockDim.x + threadIdx.x) * n;
  for (int j = 0; j < n; ++j) {
    float v = row[j];
    if (v <= best[3]) continue;
    int k = 3;
    for (; k >= 0 && best[k] < v; --k) best[k + 1] = best[k];
    best[k + 1] = v;
  }
  for (int k = 0; k < 4; ++k) out[(blockIdx.x * blockDim.x + threadIdx.x) * 4 + k] = best[k];
}
void run_four_largest(const float *host) {
  float *in = on_device(host, 128 * 50), *out;
  cudaMalloc(&out, 128 * 4 * sizeof(float));
  four_largest<<<2, 64>>>(out, in, 50);
}

// right: the last one is dropped
__global__ void four_largest_kept(float *out, const float *in, int n) {
  float best[4];
  for (int k = 0; k < 4; ++k) best[k] = -INFINITY;
  const float *row = in + (blockIdx.x * blockDim.x + threadIdx.x) * n;
  for (int j = 0; j < n; ++j) {
    float v = row[j];
    if (v <= best[3]) continue;
    int k = 3;
    for (; k > 0 && best[k - 1] < v; --k) best[k] = best[k - 1];
    best[k] = v;
  }
  for (int k = 0; k < 4; ++k) out[(blockIdx.x * blockDim.x + threadIdx.x) * 4 + k] = best[k];
}
void run_four_largest_kept(const float *host) {
  float *in = on_device(host, 128 * 50), *out;
  cudaMalloc(&out, 128 * 4 * sizeof(float));
  four_largest_kept<<<2, 64>>>(out, in, 50);
}

// wrong (bounds): the row's first element lies beyond 2^31 for the last rows
__global__ void scale_rows(float *x, const float *factors, int stride) {
  int first = blockIdx.x * stride;
  for (int c = threadIdx.x; c < stride; c += blockDim.x) x[first + c] *= factors[blockIdx.x];
}
void run_scale_rows(const float *host) {
  const int rows = 60000, stride = 50000;
  float *x, *factors = on_device(host, rows);
  cudaMalloc(&x, (size_t)rows * stride * sizeof(float));
  cudaMemset(x, 0, (size_t)rows * stride * sizeof(float));
  scale_rows<<<rows, 256>>>(x, factors, stride);
}

// right: it is a 64-bit number
__global__ void scale_long_rows(float *x, const float *factors, int stride) {
  size_t first = (size_t)blockIdx.x * stride;
  for (int c = threadIdx.x; c < stride; c += blockDim.x) x[first + c] *= factors[blockIdx.x];
}
void run_scale_long_rows(const float *host) {
  const int rows = 60000, stride = 50000;
  float *x, *factors = on_device(host, rows);
  cudaMalloc(&x, (size_t)rows * stride * sizeof(float));
  cudaMemset(x, 0, (size_t)rows * stride * sizeof(float));
  scale_long_rows<<<rows, 256>>>(x, factors, stride);
}

// wrong (bounds): one slice too many
__global__ void decay(float *cells, int3 size) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size.x || y >= size.y) return;
  for (int z = 0; z <= size.z; ++z) cells[(z * size.y + y) * size.x + x] *= 0.9f;
}
void run_decay(const float *host, int3 size) {
  float *cells = on_device(host, size.x * size.y * size.z);
  dim3 block(16, 8), grid((size.x + 15) / 16, (size.y + 7) / 8);
  decay<<<grid, block>>>(cells, size);
}

// right: as many as there are
__global__ void decay_all(float *cells, int3 size) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size.x || y >= size.y) return;
  for (int z = 0; z < size.z; ++z) cells[(z * size.y + y) * size.x + x] *= 0.9f;
}
void run_decay_all(const float *host, int3 size) {
  float *cells = on_device(host, size.x * size.y * size.z);
  dim3 block(16, 8), grid((size.x + 15) / 16, (size.y + 7) / 8);
  decay_all<<<grid, block>>>(cells, size);
}

// wrong (bounds): blocks at the lower edge have rows that the image has not
__global__ void invert(uchar4 *image, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  uchar4 p = image[y * width + x];
  image[y * width + x] = make_uchar4(255 - p.x, 255 - p.y, 255 - p.z, p.w);
}
void run_invert(const uchar4 *host) {
  constexpr int width = 640, height = 300;
  uchar4 *image;
  cudaMalloc((void **)&image, width * height * sizeof(uchar4));
  cudaMemcpy(image, host, width * height * sizeof(uchar4), cudaMemcpyHostToDevice);
  dim3 block(32, 16);
  dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
  invert<<<grid, block>>>(image, width);
}

// right: they look
__global__ void invert_inside(uchar4 *image, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (y >= height) return;
  uchar4 p = image[y * width + x];
  image[y * width + x] = make_uchar4(255 - p.x, 255 - p.y, 255 - p.z, p.w);
}
void run_invert_inside(const uchar4 *host) {
  constexpr int width = 640, height = 300;
  uchar4 *image;
  cudaMalloc((void **)&image, width * height * sizeof(uchar4));
  cudaMemcpy(image, host, width * height * sizeof(uchar4), cudaMemcpyHostToDevice);
  dim3 block(32, 16);
  dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
  invert_inside<<<grid, block>>>(image, width, height);
}

// wrong (bounds): the launch gives room for one of two arrays
__global__ void weighted(float *out, const float *x, const float *w) {
  extern __shared__ float room[];
  float *values = room, *weights = room + blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = x[i];
  weights[threadIdx.x] = w[i];
  __syncthreads();
  int mirror = blockDim.x - 1 - threadIdx.x;
  out[i] = values[mirror] * weights[mirror];
}
void run_weighted(const float *hx, const float *hw) {
  const int threads = 192;
  float *x = on_device(hx, 4 * threads), *w = on_device(hw, 4 * threads), *out;
  cudaMalloc(&out, 4 * threads * sizeof(float));
  weighted<<<4, threads, threads * sizeof(float)>>>(out, x, w);
}

// right: for both
__global__ void weighted_in_room(float *out, const float *x, const float *w) {
  extern __shared__ float room[];
  float *values = room, *weights = room + blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = x[i];
  weights[threadIdx.x] = w[i];
  __syncthreads();
  int mirror = blockDim.x - 1 - threadIdx.x;
  out[i] = values[mirror] * weights[mirror];
}
void run_weighted_in_room(const float *hx, const float *hw) {
  const int threads = 192;
  float *x = on_device(hx, 4 * threads), *w = on_device(hw, 4 * threads), *out;
  cudaMalloc(&out, 4 * threads * sizeof(float));
  weighted_in_room<<<4, threads, 2 * threads * sizeof(float)>>>(out, x, w);
}
