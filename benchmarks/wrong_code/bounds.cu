// Subscripts outside of their arrays.
#include <cuda_runtime.h>

// wrong (bounds): the last block's threads go on behind the array
__global__ void doubled(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] *= 2.0f;
}
void run_doubled(const float *host) {
  float *x;
  cudaMalloc(&x, 1000 * sizeof(float));
  cudaMemcpy(x, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  doubled<<<4, 256>>>(x, 1000);
}

// right: guarded
__global__ void doubled_guarded(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.0f;
}
void run_doubled_guarded(const float *host) {
  float *x;
  cudaMalloc(&x, 1000 * sizeof(float));
  cudaMemcpy(x, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  doubled_guarded<<<4, 256>>>(x, 1000);
}

// wrong (bounds): the guard lets one too many in
__global__ void added(int *out, const int *a, const int *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = a[i] + b[i];
}
void run_added(const int *ha, const int *hb, int n) {
  int *out, *a, *b;
  cudaMalloc(&out, n * sizeof(int));
  cudaMalloc(&a, n * sizeof(int));
  cudaMalloc(&b, n * sizeof(int));
  cudaMemcpy(a, ha, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(b, hb, n * sizeof(int), cudaMemcpyHostToDevice);
  added<<<(n + 255) / 256, 256>>>(out, a, b, n);
}

// right: only those inside
__global__ void added_inside(int *out, const int *a, const int *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
void run_added_inside(const int *ha, const int *hb, int n) {
  int *out, *a, *b;
  cudaMalloc(&out, n * sizeof(int));
  cudaMalloc(&a, n * sizeof(int));
  cudaMalloc(&b, n * sizeof(int));
  cudaMemcpy(a, ha, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(b, hb, n * sizeof(int), cudaMemcpyHostToDevice);
  added_inside<<<(n + 255) / 256, 256>>>(out, a, b, n);
}

// wrong (bounds): no guard, and a grid that is rounded up
__global__ void filled(float *x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
void run_filled(int n) {
  float *x;
  cudaMalloc(&x, n * sizeof(float));
  filled<<<(n + 127) / 128, 128>>>(x, 1.0f);
}

// right: the array is rounded up too
__global__ void filled_whole(float *x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
void run_filled_whole(int n) {
  float *x;
  int blocks = (n + 127) / 128;
  cudaMalloc(&x, blocks * 128 * sizeof(float));
  filled_whole<<<blocks, 128>>>(x, 1.0f);
}

// wrong (bounds): the left neighbour of the first element
__global__ void differences(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] - in[i - 1];
}
void run_differences(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  differences<<<2, 256>>>(out, in, 512);
}

// right: the first has none
__global__ void differences_guarded(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i > 0 ? in[i] - in[i - 1] : in[i];
}
void run_differences_guarded(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  differences_guarded<<<2, 256>>>(out, in, 512);
}

// wrong (bounds): a shared array without room for the halo
__global__ void halo(float *out, const float *in, int n) {
  __shared__ float s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t + 1] = in[i];
  __syncthreads();
  out[i] = t > 0 ? s[t] : 0.0f;
}
void run_halo(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  halo<<<8, 128>>>(out, in, 1024);
}

// right: with room
__global__ void halo_roomy(float *out, const float *in, int n) {
  __shared__ float s[129];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t + 1] = in[i];
  __syncthreads();
  out[i] = t > 0 ? s[t] : 0.0f;
}
void run_halo_roomy(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  halo_roomy<<<8, 128>>>(out, in, 1024);
}

// wrong (bounds): the launch asks for bytes where floats are meant
__global__ void staged(float *out, const float *in) {
  extern __shared__ float room[];
  int t = threadIdx.x;
  room[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = room[blockDim.x - 1 - t];
}
void run_staged(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  staged<<<8, 128, 128>>>(out, in);
}

// right: for floats
__global__ void staged_whole(float *out, const float *in) {
  extern __shared__ float room[];
  int t = threadIdx.x;
  room[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = room[blockDim.x - 1 - t];
}
void run_staged_whole(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  staged_whole<<<8, 128, 128 * sizeof(float)>>>(out, in);
}

// wrong (bounds): a local array is walked one element too far
__global__ void polynomial(float *out, const float *in) {
  float c[4] = {1.0f, 0.5f, 0.25f, 0.125f};
  int i = blockIdx.x * 64 + threadIdx.x;
  float x = in[i], sum = 0.0f;
  for (int k = 4; k >= 0; k--) sum = sum * x + c[k];
  out[i] = sum;
}
void run_polynomial(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 640 * sizeof(float));
  cudaMalloc(&in, 640 * sizeof(float));
  cudaMemcpy(in, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  polynomial<<<10, 64>>>(out, in);
}

// right: from the last
__global__ void polynomial_inside(float *out, const float *in) {
  float c[4] = {1.0f, 0.5f, 0.25f, 0.125f};
  int i = blockIdx.x * 64 + threadIdx.x;
  float x = in[i], sum = 0.0f;
  for (int k = 3; k >= 0; k--) sum = sum * x + c[k];
  out[i] = sum;
}
void run_polynomial_inside(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 640 * sizeof(float));
  cudaMalloc(&in, 640 * sizeof(float));
  cudaMemcpy(in, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  polynomial_inside<<<10, 64>>>(out, in);
}

// wrong (bounds): constant memory behind its end
__constant__ float kWeights[5];
__global__ void weighted(float *out, const float *in, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < 3 || i >= n - 3) return;
  float sum = 0.0f;
  for (int k = 0; k <= 5; k++) sum += kWeights[k] * in[i + k - 3];
  out[i] = sum;
}
void run_weighted(const float *host, const float *weights) {
  float *out, *in;
  cudaMalloc(&out, 1280 * sizeof(float));
  cudaMalloc(&in, 1280 * sizeof(float));
  cudaMemcpy(in, host, 1280 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(kWeights, weights, sizeof(kWeights));
  weighted<<<10, 128>>>(out, in, 1280);
}

// right: up to it
__constant__ float kTaps[5];
__global__ void weighted_inside(float *out, const float *in, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < 2 || i >= n - 2) return;
  float sum = 0.0f;
  for (int k = 0; k < 5; k++) sum += kTaps[k] * in[i + k - 2];
  out[i] = sum;
}
void run_weighted_inside(const float *host, const float *weights) {
  float *out, *in;
  cudaMalloc(&out, 1280 * sizeof(float));
  cudaMalloc(&in, 1280 * sizeof(float));
  cudaMemcpy(in, host, 1280 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(kTaps, weights, sizeof(kTaps));
  weighted_inside<<<10, 128>>>(out, in, 1280);
}

// wrong (bounds): a __device__ table by the number of a thread that is larger
__device__ int g_table[64];
__global__ void looked_up(int *out) { out[blockIdx.x * 96 + threadIdx.x] = g_table[threadIdx.x]; }
void run_looked_up() {
  int *out;
  cudaMalloc(&out, 960 * sizeof(int));
  looked_up<<<10, 96>>>(out);
}

// right: modulo its size
__device__ int g_names[64];
__global__ void looked_up_inside(int *out) { out[blockIdx.x * 96 + threadIdx.x] = g_names[threadIdx.x % 64]; }
void run_looked_up_inside() {
  int *out;
  cudaMalloc(&out, 960 * sizeof(int));
  looked_up_inside<<<10, 96>>>(out);
}

// wrong (bounds): rows and columns are exchanged in a matrix that is not square
__global__ void scaled_rows(float *m, const float *scale, int rows, int columns) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < rows && c < columns) m[c * columns + r] *= scale[r];
}
void run_scaled_rows(const float *host, const float *factors) {
  float *m, *scale;
  const int rows = 32, columns = 64;
  cudaMalloc(&m, rows * columns * sizeof(float));
  cudaMalloc(&scale, rows * sizeof(float));
  cudaMemcpy(m, host, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(scale, factors, rows * sizeof(float), cudaMemcpyHostToDevice);
  scaled_rows<<<dim3(4, 2), dim3(16, 16)>>>(m, scale, rows, columns);
}

// right: row by row
__global__ void scaled_rows_inside(float *m, const float *scale, int rows, int columns) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < rows && c < columns) m[r * columns + c] *= scale[r];
}
void run_scaled_rows_inside(const float *host, const float *factors) {
  float *m, *scale;
  const int rows = 32, columns = 64;
  cudaMalloc(&m, rows * columns * sizeof(float));
  cudaMalloc(&scale, rows * sizeof(float));
  cudaMemcpy(m, host, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(scale, factors, rows * sizeof(float), cudaMemcpyHostToDevice);
  scaled_rows_inside<<<dim3(4, 2), dim3(16, 16)>>>(m, scale, rows, columns);
}

// wrong (bounds): memory for as many bytes as there should be elements
__global__ void ramp(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
void run_ramp() {
  int *x;
  cudaMalloc(&x, 512);
  ramp<<<2, 256>>>(x);
}

// right: for as many elements
__global__ void ramp_whole(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
void run_ramp_whole() {
  int *x;
  cudaMalloc(&x, 512 * sizeof(int));
  ramp_whole<<<2, 256>>>(x);
}

// wrong (bounds): the loop's second access runs ahead of its first
__global__ void pairs(float *out, const float *in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = in[i] + in[i + blockDim.x];
}
void run_pairs(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 4096 * sizeof(float));
  cudaMalloc(&in, 4096 * sizeof(float));
  cudaMemcpy(in, host, 4096 * sizeof(float), cudaMemcpyHostToDevice);
  pairs<<<2, 128>>>(out, in, 4096);
}

// right: where it exists
__global__ void pairs_inside(float *out, const float *in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = in[i] + (i + blockDim.x < n ? in[i + blockDim.x] : 0.0f);
}
void run_pairs_inside(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 4096 * sizeof(float));
  cudaMalloc(&in, 4096 * sizeof(float));
  cudaMemcpy(in, host, 4096 * sizeof(float), cudaMemcpyHostToDevice);
  pairs_inside<<<2, 128>>>(out, in, 4096);
}

// wrong (bounds): the guard tests the row and not the column
__global__ void cropped(unsigned char *out, const unsigned char *in, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (y < height) out[y * width + x] = in[y * width + x] / 2;
}
void run_cropped(const unsigned char *host) {
  unsigned char *out, *in;
  cudaMalloc(&out, 100 * 60);
  cudaMalloc(&in, 100 * 60);
  cudaMemcpy(in, host, 100 * 60, cudaMemcpyHostToDevice);
  cropped<<<dim3(4, 8), dim3(32, 8)>>>(out, in, 100, 60);
}

// right: both
__global__ void cropped_inside(unsigned char *out, const unsigned char *in, int width, int height) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (y < height && x < width) out[y * width + x] = in[y * width + x] / 2;
}
void run_cropped_inside(const unsigned char *host) {
  unsigned char *out, *in;
  cudaMalloc(&out, 100 * 60);
  cudaMalloc(&in, 100 * 60);
  cudaMemcpy(in, host, 100 * 60, cudaMemcpyHostToDevice);
  cropped_inside<<<dim3(4, 8), dim3(32, 8)>>>(out, in, 100, 60);
}

// wrong (bounds): four floats at once behind a size that is not a multiple of four
__global__ void by_four(float4 *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = x[i];
    v.x += 1.0f;
    x[i] = v;
  }
}
void run_by_four(const float *host) {
  float *x;
  cudaMalloc(&x, 1002 * sizeof(float));
  cudaMemcpy(x, host, 1002 * sizeof(float), cudaMemcpyHostToDevice);
  by_four<<<1, 256>>>(reinterpret_cast<float4 *>(x), 251);
}

// right: within it
__global__ void by_four_inside(float4 *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = x[i];
    v.x += 1.0f;
    x[i] = v;
  }
}
void run_by_four_inside(const float *host) {
  float *x;
  cudaMalloc(&x, 1002 * sizeof(float));
  cudaMemcpy(x, host, 1002 * sizeof(float), cudaMemcpyHostToDevice);
  by_four_inside<<<1, 256>>>(reinterpret_cast<float4 *>(x), 250);
}

// wrong (bounds): a product of 32 bits wraps around before it becomes an address
__global__ void far_rows(float *x, int pitch) {
  int at = blockIdx.x * pitch + threadIdx.x;
  x[at] = 1.0f;
}
void run_far_rows() {
  float *x;
  const long pitch = 1 << 20;
  cudaMalloc(&x, 3000 * pitch * sizeof(float));
  far_rows<<<3000, 32>>>(x, 1 << 20);
}

// right: of 64 bits
__global__ void far_rows_wide(float *x, int pitch) {
  long at = (long)blockIdx.x * pitch + threadIdx.x;
  x[at] = 1.0f;
}
void run_far_rows_wide() {
  float *x;
  const long pitch = 1 << 20;
  cudaMalloc(&x, 3000 * pitch * sizeof(float));
  far_rows_wide<<<3000, 32>>>(x, 1 << 20);
}
