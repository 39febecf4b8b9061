// Memory that the host hands over wrongly, and memory that nobody wrote.
#include <cuda_runtime.h>
#include <cstdlib>
#include <cstring>
#include <vector>

// wrong (memory): a shared array is read where only half of it was written
__global__ void half_written(float *out, const float *in) {
  __shared__ float s[128];
  int t = threadIdx.x;
  if (t < 64) s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  out[blockIdx.x * 128 + t] = s[127 - t];
}
void run_half_written(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  half_written<<<8, 128>>>(out, in);
}

// right: the other half is zeroed
__global__ void wholly_written(float *out, const float *in) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = t < 64 ? in[blockIdx.x * 64 + t] : 0.0f;
  __syncthreads();
  out[blockIdx.x * 128 + t] = s[127 - t];
}
void run_wholly_written(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  wholly_written<<<8, 128>>>(out, in);
}

// wrong (memory): a shared counter starts with what was there
__global__ void count_large(int *counts, const int *in) {
  __shared__ int count;
  if (in[blockIdx.x * 128 + threadIdx.x] > 10) atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}
void run_count_large(const int *host) {
  int *counts, *in;
  cudaMalloc(&counts, 8 * sizeof(int));
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMemcpy(in, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  count_large<<<8, 128>>>(counts, in);
}

// right: with zero
__global__ void count_large_from_zero(int *counts, const int *in) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (in[blockIdx.x * 128 + threadIdx.x] > 10) atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}
void run_count_large_from_zero(const int *host) {
  int *counts, *in;
  cudaMalloc(&counts, 8 * sizeof(int));
  cudaMalloc(&in, 1024 * sizeof(int));
  cudaMemcpy(in, host, 1024 * sizeof(int), cudaMemcpyHostToDevice);
  count_large_from_zero<<<8, 128>>>(counts, in);
}

// wrong (memory): cudaMemset gets elements where it wants bytes, and a quarter is zeroed
__global__ void accumulated(float *sums, const float *in) {
  int i = blockIdx.x * 128 + threadIdx.x;
  sums[i] += in[i];
}
void run_accumulated(const float *host) {
  const int n = 1024;
  float *sums, *in;
  cudaMalloc(&sums, n * sizeof(float));
  cudaMemset(sums, 0, n);
  cudaMalloc(&in, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  accumulated<<<n / 128, 128>>>(sums, in);
}

// right: bytes
__global__ void accumulated_from_zero(float *sums, const float *in) {
  int i = blockIdx.x * 128 + threadIdx.x;
  sums[i] += in[i];
}
void run_accumulated_from_zero(const float *host) {
  const int n = 1024;
  float *sums, *in;
  cudaMalloc(&sums, n * sizeof(float));
  cudaMemset(sums, 0, n * sizeof(float));
  cudaMalloc(&in, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  accumulated_from_zero<<<n / 128, 128>>>(sums, in);
}

// wrong (memory): cudaMemcpy copies n bytes of n doubles
__global__ void inverted(double *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 1.0 / x[i];
}
void run_inverted(double *host, int n) {
  double *x;
  cudaMalloc(&x, n * sizeof(double));
  cudaMemcpy(x, host, n, cudaMemcpyHostToDevice);
  inverted<<<(n + 127) / 128, 128>>>(x, n);
  cudaMemcpy(host, x, n * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(x);
}

// right: of n bytes
__global__ void inverted_bytes(unsigned char *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 255 - x[i];
}
void run_inverted_bytes(unsigned char *host, int n) {
  unsigned char *x;
  cudaMalloc(&x, n);
  cudaMemcpy(x, host, n, cudaMemcpyHostToDevice);
  inverted_bytes<<<(n + 127) / 128, 128>>>(x, n);
  cudaMemcpy(host, x, n, cudaMemcpyDeviceToHost);
  cudaFree(x);
}

// wrong (memory): the kernel is handed memory of malloc
__global__ void summed(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += in[i];
}
void run_summed(int n) {
  float *out;
  float *in = (float *)malloc(n * sizeof(float));
  for (int i = 0; i < n; i++) in[i] = i;
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(out, 0, n * sizeof(float));
  summed<<<(n + 255) / 256, 256>>>(out, in, n);
}

// right: of cudaMallocManaged
__global__ void summed_managed(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += in[i];
}
void run_summed_managed(int n) {
  float *out, *in;
  cudaMallocManaged(&in, n * sizeof(float));
  for (int i = 0; i < n; i++) in[i] = i;
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(out, 0, n * sizeof(float));
  summed_managed<<<(n + 255) / 256, 256>>>(out, in, n);
}

// wrong (memory): the data of a std::vector are the host's
__global__ void tripled(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 3;
}
void run_tripled(int n) {
  std::vector<int> values(n, 1);
  tripled<<<(n + 63) / 64, 64>>>(values.data(), n);
  cudaDeviceSynchronize();
}

// right: a copy of them
__global__ void tripled_copy(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 3;
}
void run_tripled_copy(int n) {
  std::vector<int> values(n, 1);
  int *x;
  cudaMalloc(&x, n * sizeof(int));
  cudaMemcpy(x, values.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  tripled_copy<<<(n + 63) / 64, 64>>>(x, n);
  cudaMemcpy(values.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(x);
}

// wrong (memory): a local array of the host
__global__ void marked(int *flags) { flags[threadIdx.x] = threadIdx.x; }
void run_marked() {
  int flags[32];
  memset(flags, 0, sizeof(flags));
  marked<<<1, 32>>>(flags);
  cudaDeviceSynchronize();
}

// right: one of the device, copied to it
__global__ void marked_on_device(int *flags) { flags[threadIdx.x] = threadIdx.x; }
void run_marked_on_device() {
  int flags[32];
  int *d_flags;
  cudaMalloc(&d_flags, sizeof(flags));
  marked_on_device<<<1, 32>>>(d_flags);
  cudaMemcpy(flags, d_flags, sizeof(flags), cudaMemcpyDeviceToHost);
  cudaFree(d_flags);
}

// wrong (memory): the array is freed before the second launch
__global__ void stepped(float *x) { x[blockIdx.x * 64 + threadIdx.x] += 1.0f; }
void run_stepped(const float *host) {
  float *x;
  cudaMalloc(&x, 640 * sizeof(float));
  cudaMemcpy(x, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  stepped<<<10, 64>>>(x);
  cudaFree(x);
  stepped<<<10, 64>>>(x);
  cudaDeviceSynchronize();
}

// right: behind it
__global__ void stepped_twice(float *x) { x[blockIdx.x * 64 + threadIdx.x] += 1.0f; }
void run_stepped_twice(const float *host) {
  float *x;
  cudaMalloc(&x, 640 * sizeof(float));
  cudaMemcpy(x, host, 640 * sizeof(float), cudaMemcpyHostToDevice);
  stepped_twice<<<10, 64>>>(x);
  stepped_twice<<<10, 64>>>(x);
  cudaDeviceSynchronize();
  cudaFree(x);
}

// wrong (memory): the result is copied out of memory that was freed
__global__ void numbered(int *x) { x[threadIdx.x] = threadIdx.x; }
void run_numbered(int *host) {
  int *x;
  cudaMalloc(&x, 128 * sizeof(int));
  numbered<<<1, 128>>>(x);
  cudaFree(x);
  cudaMemcpy(host, x, 128 * sizeof(int), cudaMemcpyDeviceToHost);
}

// right: freed and allocated anew
__global__ void numbered_anew(int *x) { x[threadIdx.x] = threadIdx.x; }
void run_numbered_anew(int *host) {
  int *x;
  cudaMalloc(&x, 128 * sizeof(int));
  numbered_anew<<<1, 128>>>(x);
  cudaFree(x);
  cudaMalloc(&x, 64 * sizeof(int));
  numbered_anew<<<1, 64>>>(x);
  cudaMemcpy(host, x, 64 * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(x);
}

// wrong (memory): the copy back is of more bytes than the array has
__global__ void halved(float *out, const float *in) {
  out[threadIdx.x] = 0.5f * (in[2 * threadIdx.x] + in[2 * threadIdx.x + 1]);
}
void run_halved(float *host) {
  const int n = 256;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n / 2 * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  halved<<<1, n / 2>>>(out, in);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
}

// right: of as many as it has
__global__ void halved_inside(float *out, const float *in) {
  out[threadIdx.x] = 0.5f * (in[2 * threadIdx.x] + in[2 * threadIdx.x + 1]);
}
void run_halved_inside(float *host) {
  const int n = 256;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n / 2 * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  halved_inside<<<1, n / 2>>>(out, in);
  cudaMemcpy(host, out, n / 2 * sizeof(float), cudaMemcpyDeviceToHost);
}

// wrong (memory): an accumulator in a loop that no one set before
__global__ void dot_rows(float *out, const float *m, const float *v, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n)
    for (int k = 0; k < n; k++) out[row] += m[row * n + k] * v[k];
}
void run_dot_rows(const float *hm, const float *hv, float *host) {
  const int n = 64;
  float *out, *m, *v;
  cudaMalloc(&out, n * sizeof(float));
  cudaMalloc(&m, n * n * sizeof(float));
  cudaMalloc(&v, n * sizeof(float));
  cudaMemcpy(m, hm, n * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(v, hv, n * sizeof(float), cudaMemcpyHostToDevice);
  dot_rows<<<1, n>>>(out, m, v, n);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
}

// right: zeroed by the host
__global__ void dot_rows_from_zero(float *out, const float *m, const float *v, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n)
    for (int k = 0; k < n; k++) out[row] += m[row * n + k] * v[k];
}
void run_dot_rows_from_zero(const float *hm, const float *hv, float *host) {
  const int n = 64;
  float *out, *m, *v;
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(out, 0, n * sizeof(float));
  cudaMalloc(&m, n * n * sizeof(float));
  cudaMalloc(&v, n * sizeof(float));
  cudaMemcpy(m, hm, n * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(v, hv, n * sizeof(float), cudaMemcpyHostToDevice);
  dot_rows_from_zero<<<1, n>>>(out, m, v, n);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
}
