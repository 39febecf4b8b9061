// Memory that is handed over wrongly, in the styles of larger programs: buffers that are classes, symbols, rows, streams.
#include <cuda_runtime.h>
#include <cstdlib>
#include <vector>

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : count(n) { cudaMalloc(&data, n * sizeof(T)); }
  ~Buffer() { cudaFree(data); }
  T *get() { return data; }
  size_t size() const { return count; }

 private:
  T *data = nullptr;
  size_t count;
};

// wrong (memory): rows are copied by their elements, not their bytes
__global__ void brighten(float *image, size_t pitch, int width) {
  float *row = (float *)((char *)image + blockIdx.x * pitch);
  for (int c = threadIdx.x; c < width; c += blockDim.x) row[c] *= 1.5f;
}
void run_brighten(float *host, int width, int height) {
  float *image;
  size_t pitch;
  cudaMallocPitch(&image, &pitch, width * sizeof(float), height);
  cudaMemcpy2D(image, pitch, host, width * sizeof(float), width, height, cudaMemcpyHostToDevice);
  brighten<<<height, 128>>>(image, pitch, width);
  cudaFree(image);
}

// right: by their bytes
__global__ void brighten_rows(float *image, size_t pitch, int width) {
  float *row = (float *)((char *)image + blockIdx.x * pitch);
  for (int c = threadIdx.x; c < width; c += blockDim.x) row[c] *= 1.5f;
}
void run_brighten_rows(float *host, int width, int height) {
  float *image;
  size_t pitch;
  cudaMallocPitch(&image, &pitch, width * sizeof(float), height);
  cudaMemcpy2D(image, pitch, host, width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice);
  brighten_rows<<<height, 128>>>(image, pitch, width);
  cudaFree(image);
}

// wrong (memory): a struct hands the kernel an array of the host
struct Particles {
  float3 *at;
  float3 *speed;
  int n;
};
__global__ void move(Particles p, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.n) return;
  p.at[i].x += dt * p.speed[i].x;
  p.at[i].y += dt * p.speed[i].y;
  p.at[i].z += dt * p.speed[i].z;
}
void run_move(int n) {
  Particles p;
  p.n = n;
  p.speed = new float3[n]();
  cudaMalloc(&p.at, n * sizeof(float3));
  cudaMemset(p.at, 0, n * sizeof(float3));
  move<<<(n + 255) / 256, 256>>>(p, 0.1f);
}

// right: of the device
struct Bodies {
  float3 *at;
  float3 *speed;
  int n;
};
__global__ void move_bodies(Bodies p, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.n) return;
  p.at[i].x += dt * p.speed[i].x;
  p.at[i].y += dt * p.speed[i].y;
  p.at[i].z += dt * p.speed[i].z;
}
void run_move_bodies(int n) {
  Bodies p;
  p.n = n;
  float3 *speed = new float3[n]();
  cudaMalloc(&p.at, n * sizeof(float3));
  cudaMalloc(&p.speed, n * sizeof(float3));
  cudaMemset(p.at, 0, n * sizeof(float3));
  cudaMemcpy(p.speed, speed, n * sizeof(float3), cudaMemcpyHostToDevice);
  move_bodies<<<(n + 255) / 256, 256>>>(p, 0.1f);
}

// wrong (memory): the second kernel's input is freed before it is launched
__global__ void doubled(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * in[i];
}
void run_doubled(const std::vector<float> &host, cudaStream_t stream) {
  int n = (int)host.size();
  float *a, *b;
  cudaMallocAsync(&a, n * sizeof(float), stream);
  cudaMallocAsync(&b, n * sizeof(float), stream);
  cudaMemcpyAsync(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream);
  doubled<<<(n + 127) / 128, 128, 0, stream>>>(b, a, n);
  cudaFreeAsync(b, stream);
  doubled<<<(n + 127) / 128, 128, 0, stream>>>(a, b, n);
  cudaFreeAsync(a, stream);
}

// right: behind it
__global__ void doubled_twice(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * in[i];
}
void run_doubled_twice(const std::vector<float> &host, cudaStream_t stream) {
  int n = (int)host.size();
  float *a, *b;
  cudaMallocAsync(&a, n * sizeof(float), stream);
  cudaMallocAsync(&b, n * sizeof(float), stream);
  cudaMemcpyAsync(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream);
  doubled_twice<<<(n + 127) / 128, 128, 0, stream>>>(b, a, n);
  doubled_twice<<<(n + 127) / 128, 128, 0, stream>>>(a, b, n);
  cudaFreeAsync(b, stream);
  cudaFreeAsync(a, stream);
}

// wrong (memory): a quarter of the counters is zeroed
__global__ void count_words(unsigned *counts, const unsigned *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[keys[i] & 1023], 1u);
}
void run_count_words(const unsigned *host, int n) {
  Buffer<unsigned> counts(1024), keys(n);
  cudaMemset(counts.get(), 0, counts.size());
  cudaMemcpy(keys.get(), host, keys.size() * sizeof(unsigned), cudaMemcpyHostToDevice);
  count_words<<<(n + 255) / 256, 256>>>(counts.get(), keys.get(), n);
}

// right: all are
__global__ void count_all_words(unsigned *counts, const unsigned *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[keys[i] & 1023], 1u);
}
void run_count_all_words(const unsigned *host, int n) {
  Buffer<unsigned> counts(1024), keys(n);
  cudaMemset(counts.get(), 0, counts.size() * sizeof(unsigned));
  cudaMemcpy(keys.get(), host, keys.size() * sizeof(unsigned), cudaMemcpyHostToDevice);
  count_all_words<<<(n + 255) / 256, 256>>>(counts.get(), keys.get(), n);
}

// wrong (memory): a sum is added to what nobody set
__global__ void dot(float *result, const float *a, const float *b, int n) {
  float v = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += a[i] * b[i];
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(result, v);
}
float run_dot(const float *ha, const float *hb, int n) {
  float *a, *b, *result, value;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&result, sizeof(float));
  cudaMemcpy(a, ha, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, hb, n * sizeof(float), cudaMemcpyHostToDevice);
  dot<<<16, 256>>>(result, a, b, n);
  cudaMemcpy(&value, result, sizeof(float), cudaMemcpyDeviceToHost);
  return value;
}

// right: to zero
__global__ void dot_from_zero(float *result, const float *a, const float *b, int n) {
  float v = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += a[i] * b[i];
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(result, v);
}
float run_dot_from_zero(const float *ha, const float *hb, int n) {
  float *a, *b, *result, value = 0.0f;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&result, sizeof(float));
  cudaMemcpy(a, ha, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, hb, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(result, &value, sizeof(float), cudaMemcpyHostToDevice);
  dot_from_zero<<<16, 256>>>(result, a, b, n);
  cudaMemcpy(&value, result, sizeof(float), cudaMemcpyDeviceToHost);
  return value;
}

// wrong (memory): a symbol of sixteen numbers is given sixteen bytes
__constant__ float matrix[16];
__global__ void transform(float4 *v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 p = v[i];
  v[i].x = matrix[0] * p.x + matrix[1] * p.y + matrix[2] * p.z + matrix[3] * p.w;
  v[i].w = matrix[12] * p.x + matrix[13] * p.y + matrix[14] * p.z + matrix[15] * p.w;
}
void run_transform(const float *m, const float4 *host, int n) {
  float4 *v;
  cudaMalloc(&v, n * sizeof(float4));
  cudaMemcpy(v, host, n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(matrix, m, 16);
  transform<<<(n + 127) / 128, 128>>>(v, n);
}

// right: all of its bytes
__constant__ float whole_matrix[16];
__global__ void transform_wholly(float4 *v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 p = v[i];
  v[i].x = whole_matrix[0] * p.x + whole_matrix[1] * p.y + whole_matrix[2] * p.z + whole_matrix[3] * p.w;
  v[i].w = whole_matrix[12] * p.x + whole_matrix[13] * p.y + whole_matrix[14] * p.z + whole_matrix[15] * p.w;
}
void run_transform_wholly(const float *m, const float4 *host, int n) {
  float4 *v;
  cudaMalloc(&v, n * sizeof(float4));
  cudaMemcpy(v, host, n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(whole_matrix, m, 16 * sizeof(float));
  transform_wholly<<<(n + 127) / 128, 128>>>(v, n);
}

// wrong (memory): the kernel counts in a variable of the host's stack
__global__ void count_negative(int *count, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0.0f) atomicAdd(count, 1);
}
int run_count_negative(const float *host, int n) {
  float *x;
  int count = 0;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  count_negative<<<(n + 255) / 256, 256>>>(&count, x, n);
  cudaDeviceSynchronize();
  cudaFree(x);
  return count;
}

// right: in managed memory
__global__ void count_negative_numbers(int *count, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0.0f) atomicAdd(count, 1);
}
int run_count_negative_numbers(const float *host, int n) {
  float *x;
  int *count;
  cudaMallocManaged(&count, sizeof(int));
  *count = 0;
  cudaMalloc(&x, n * sizeof(float));
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
  count_negative_numbers<<<(n + 255) / 256, 256>>>(count, x, n);
  cudaDeviceSynchronize();
  int found = *count;
  cudaFree(x);
  cudaFree(count);
  return found;
}

// wrong (memory): a thread without a neighbour adds a number that it never set
__global__ void with_left(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left;
  if (threadIdx.x > 0) left = in[i - 1];
  out[i] = in[i] + left;
}
void run_with_left(const float *host) {
  float *in, *out;
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  with_left<<<4, 128>>>(out, in, 512);
}

// right: it adds nothing
__global__ void with_left_if_any(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left = 0.0f;
  if (threadIdx.x > 0) left = in[i - 1];
  out[i] = in[i] + left;
}
void run_with_left_if_any(const float *host) {
  float *in, *out;
  cudaMalloc(&in, 512 * sizeof(float));
  cudaMalloc(&out, 512 * sizeof(float));
  cudaMemcpy(in, host, 512 * sizeof(float), cudaMemcpyHostToDevice);
  with_left_if_any<<<4, 128>>>(out, in, 512);
}
