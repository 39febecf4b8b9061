// Accesses outside of arrays in styles that the rules were not written by: extents that are formulas, arrays in structs.
#include <cuda_runtime.h>

// wrong (bounds): n - 1 differences, and n threads that store one
__global__ void differences(float *d, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) d[i] = x[i < n - 1 ? i + 1 : i] - x[i];
}
void run_differences(const float *host, int n) {
  float *d, *x;
  cudaMalloc(&d, (n - 1) * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  differences<<<(n + 127) / 128, 128>>>(d, x, n);
}

// right: n - 1 threads
__global__ void differences_but_one(float *d, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) d[i] = x[i + 1] - x[i];
}
void run_differences_but_one(const float *host, int n) {
  float *d, *x;
  cudaMalloc(&d, (n - 1) * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  differences_but_one<<<(n + 127) / 128, 128>>>(d, x, n);
}

// wrong (bounds): the last row of the tile has no row below
__global__ void row_below(float *out, const float *in) {
  __shared__ float tile[16][17];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 16 + x];
  __syncthreads();
  out[y * 16 + x] = tile[y + 1][x] - tile[y][x];
}
void run_row_below(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 256 * sizeof(float));
  cudaMalloc(&in, 256 * sizeof(float));
  cudaMemcpy(in, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  row_below<<<1, dim3(16, 16)>>>(out, in);
}

// right: and is left out
__global__ void row_below_if_any(float *out, const float *in) {
  __shared__ float tile[16][17];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 16 + x];
  __syncthreads();
  out[y * 16 + x] = y < 15 ? tile[y + 1][x] - tile[y][x] : 0.0f;
}
void run_row_below_if_any(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 256 * sizeof(float));
  cudaMalloc(&in, 256 * sizeof(float));
  cudaMemcpy(in, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  row_below_if_any<<<1, dim3(16, 16)>>>(out, in);
}

// wrong (bounds): a thread's own table of eight by a number up to fifteen
__global__ void by_nibble(int *out, const unsigned *in) {
  int seen[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  unsigned word = in[threadIdx.x];
  for (int k = 0; k < 8; ++k) seen[(threadIdx.x + k) & 15] += (word >> (4 * k)) & 15;
  int most = 0;
  for (int k = 0; k < 8; ++k) most = max(most, seen[k]);
  out[threadIdx.x] = most;
}
void run_by_nibble(const unsigned *host) {
  int *out;
  unsigned *in;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&in, 64 * sizeof(unsigned));
  cudaMemcpy(in, host, 64 * sizeof(unsigned), cudaMemcpyHostToDevice);
  by_nibble<<<1, 64>>>(out, in);
}

// right: up to seven
__global__ void by_octal(int *out, const unsigned *in) {
  int seen[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  unsigned word = in[threadIdx.x];
  for (int k = 0; k < 8; ++k) seen[(threadIdx.x + k) & 7] += (word >> (4 * k)) & 15;
  int most = 0;
  for (int k = 0; k < 8; ++k) most = max(most, seen[k]);
  out[threadIdx.x] = most;
}
void run_by_octal(const unsigned *host) {
  int *out;
  unsigned *in;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&in, 64 * sizeof(unsigned));
  cudaMemcpy(in, host, 64 * sizeof(unsigned), cudaMemcpyHostToDevice);
  by_octal<<<1, 64>>>(out, in);
}

// wrong (bounds): the stencil's weights in constant memory are counted from one too far
struct Stencil {
  float weight[9];
};
__constant__ Stencil stencil;
__global__ void convolve(float *out, const float *in, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < 1 || x >= w - 1 || y < 1 || y >= h - 1) return;
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) sum += stencil.weight[(dy + 1) * 3 + dx + 2] * in[(y + dy) * w + x + dx];
  out[y * w + x] = sum;
}
void run_convolve(const float *host, const Stencil *weights) {
  float *out, *in;
  cudaMalloc(&out, 64 * 32 * sizeof(float));
  cudaMalloc(&in, 64 * 32 * sizeof(float));
  cudaMemcpyToSymbol(stencil, weights, sizeof(Stencil));
  cudaMemcpy(in, host, 64 * 32 * sizeof(float), cudaMemcpyHostToDevice);
  convolve<<<dim3(2, 32), 32>>>(out, in, 64, 32);
}

// right: from zero
struct Weights {
  float weight[9];
};
__constant__ Weights weights;
__global__ void convolve_from_zero(float *out, const float *in, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < 1 || x >= w - 1 || y < 1 || y >= h - 1) return;
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) sum += weights.weight[(dy + 1) * 3 + dx + 1] * in[(y + dy) * w + x + dx];
  out[y * w + x] = sum;
}
void run_convolve_from_zero(const float *host, const Weights *given) {
  float *out, *in;
  cudaMalloc(&out, 64 * 32 * sizeof(float));
  cudaMalloc(&in, 64 * 32 * sizeof(float));
  cudaMemcpyToSymbol(weights, given, sizeof(Weights));
  cudaMemcpy(in, host, 64 * 32 * sizeof(float), cudaMemcpyHostToDevice);
  convolve_from_zero<<<dim3(2, 32), 32>>>(out, in, 64, 32);
}

// wrong (bounds): no bias is handed over, and it is added
__global__ void add_bias(float *x, const float *bias, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += bias[i];
}
void run_add_bias(const float *host) {
  float *x;
  cudaMalloc(&x, 1000 * sizeof(float));
  cudaMemcpy(x, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  add_bias<<<4, 256>>>(x, nullptr, 1000);
}

// right: only if there is one
__global__ void add_bias_if_any(float *x, const float *bias, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += bias ? bias[i] : 1.0f;
}
void run_add_bias_if_any(const float *host) {
  float *x;
  cudaMalloc(&x, 1000 * sizeof(float));
  cudaMemcpy(x, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  add_bias_if_any<<<4, 256>>>(x, nullptr, 1000);
}

// wrong (bounds): a register of some board is written by its number
__global__ void ring_bell(int *out) {
  out[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) *reinterpret_cast<volatile int *>(0x40) = 1;
}
void run_ring_bell() {
  int *out;
  cudaMalloc(&out, 32 * sizeof(int));
  ring_bell<<<1, 32>>>(out);
}

// right: by a pointer
__global__ void ring_given_bell(int *out, int *bell) {
  out[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) *reinterpret_cast<volatile int *>(bell) = 1;
}
void run_ring_given_bell() {
  int *out, *bell;
  cudaMalloc(&out, 32 * sizeof(int));
  cudaMalloc(&bell, sizeof(int));
  ring_given_bell<<<1, 32>>>(out, bell);
}

// wrong (bounds): block times threads times the row's length is more than 32 bits hold
__global__ void clear_rows(char *m, int row) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * row;
  m[first] = 0;
}
void run_clear_rows() {
  char *m;
  size_t rows = 1 << 21, row = 2048;
  cudaMalloc(&m, rows * row);
  clear_rows<<<rows / 256, 256>>>(m, row);
}

// right: of 64 bits
__global__ void clear_long_rows(char *m, int row) {
  size_t first = size_t(blockIdx.x * blockDim.x + threadIdx.x) * row;
  m[first] = 0;
}
void run_clear_long_rows() {
  char *m;
  size_t rows = 1 << 21, row = 2048;
  cudaMalloc(&m, rows * row);
  clear_long_rows<<<rows / 256, 256>>>(m, row);
}

// wrong (bounds): a volume whose depth is no multiple of the block's, guarded in two of three directions
__global__ void fill_volume(float *v, int3 size) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < size.x && y < size.y) v[(z * size.y + y) * size.x + x] = 1.0f;
}
void run_fill_volume() {
  float *v;
  int3 size = make_int3(20, 12, 10);
  cudaMalloc(&v, 20 * 12 * 10 * sizeof(float));
  fill_volume<<<dim3(3, 3, 3), dim3(8, 4, 4)>>>(v, size);
}

// right: in all three
__global__ void fill_whole_volume(float *v, int3 size) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < size.x && y < size.y && z < size.z) v[(z * size.y + y) * size.x + x] = 1.0f;
}
void run_fill_whole_volume() {
  float *v;
  int3 size = make_int3(20, 12, 10);
  cudaMalloc(&v, 20 * 12 * 10 * sizeof(float));
  fill_whole_volume<<<dim3(3, 3, 3), dim3(8, 4, 4)>>>(v, size);
}

// wrong (bounds): the starts of rows rows, and the end of the last is read behind them
__global__ void row_lengths(int *lengths, const int *starts, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) lengths[r] = starts[r + 1] - starts[r];
}
void run_row_lengths(const int *host, int rows) {
  int *lengths, *starts;
  cudaMalloc((void **)&lengths, sizeof(int) * rows);
  cudaMalloc((void **)&starts, sizeof(int) * rows);
  cudaMemcpy(starts, host, sizeof(int) * rows, cudaMemcpyHostToDevice);
  row_lengths<<<(rows + 255) / 256, 256>>>(lengths, starts, rows);
}

// right: the starts of rows + 1
__global__ void row_lengths_with_end(int *lengths, const int *starts, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) lengths[r] = starts[r + 1] - starts[r];
}
void run_row_lengths_with_end(const int *host, int rows) {
  int *lengths, *starts;
  cudaMalloc((void **)&lengths, sizeof(int) * rows);
  cudaMalloc((void **)&starts, sizeof(int) * (rows + 1));
  cudaMemcpy(starts, host, sizeof(int) * (rows + 1), cudaMemcpyHostToDevice);
  row_lengths_with_end<<<(rows + 255) / 256, 256>>>(lengths, starts, rows);
}

// wrong (bounds): backwards from n instead of n - 1
__global__ void backwards(short *out, const short *in, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[n - i];
}
void run_backwards(const short *host) {
  const unsigned n = 5000;
  short *out, *in;
  cudaMalloc(&out, n * sizeof *out);
  cudaMalloc(&in, n * sizeof *in);
  cudaMemcpy(in, host, n * sizeof *in, cudaMemcpyHostToDevice);
  backwards<<<8, 256>>>(out, in, n);
}

// right: from n - 1
__global__ void backwards_from_last(short *out, const short *in, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[n - 1 - i];
}
void run_backwards_from_last(const short *host) {
  const unsigned n = 5000;
  short *out, *in;
  cudaMalloc(&out, n * sizeof *out);
  cudaMalloc(&in, n * sizeof *in);
  cudaMemcpy(in, host, n * sizeof *in, cudaMemcpyHostToDevice);
  backwards_from_last<<<8, 256>>>(out, in, n);
}

// wrong (bounds): the launch has dynamic memory for the keys alone
__global__ void sort_pairs(int *keys, float *values) {
  extern __shared__ char memory[];
  int *k = reinterpret_cast<int *>(memory);
  float *v = reinterpret_cast<float *>(k + blockDim.x);
  k[threadIdx.x] = keys[threadIdx.x];
  v[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  keys[threadIdx.x] = k[blockDim.x - 1 - threadIdx.x];
  values[threadIdx.x] = v[blockDim.x - 1 - threadIdx.x];
}
void run_sort_pairs(const int *ks, const float *vs) {
  int *keys;
  float *values;
  cudaMalloc(&keys, 128 * sizeof(int));
  cudaMalloc(&values, 128 * sizeof(float));
  cudaMemcpy(keys, ks, 128 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(values, vs, 128 * sizeof(float), cudaMemcpyHostToDevice);
  sort_pairs<<<1, 128, 128 * sizeof(int)>>>(keys, values);
}

// right: for both
__global__ void sort_both(int *keys, float *values) {
  extern __shared__ char memory[];
  int *k = reinterpret_cast<int *>(memory);
  float *v = reinterpret_cast<float *>(k + blockDim.x);
  k[threadIdx.x] = keys[threadIdx.x];
  v[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  keys[threadIdx.x] = k[blockDim.x - 1 - threadIdx.x];
  values[threadIdx.x] = v[blockDim.x - 1 - threadIdx.x];
}
void run_sort_both(const int *ks, const float *vs) {
  int *keys;
  float *values;
  cudaMalloc(&keys, 128 * sizeof(int));
  cudaMalloc(&values, 128 * sizeof(float));
  cudaMemcpy(keys, ks, 128 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(values, vs, 128 * sizeof(float), cudaMemcpyHostToDevice);
  sort_both<<<1, 128, 128 * (sizeof(int) + sizeof(float))>>>(keys, values);
}
