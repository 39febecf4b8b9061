// Memory that is handed over wrongly in the styles of public kernels: thrust's vectors, macros that check, histograms.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

// wrong (memory): the histogram's first eight counters alone are set to zero
__global__ void histogram(unsigned *bins, const unsigned char *data, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&bins[data[i] % 32], 1u);
}
void run_histogram(const unsigned char *host, unsigned *counts) {
  const int n = 1 << 16, kBins = 32;
  unsigned *bins;
  unsigned char *data;
  CHECK(cudaMalloc(&bins, kBins * sizeof(unsigned)));
  CHECK(cudaMalloc(&data, n));
  CHECK(cudaMemset(bins, 0, kBins));
  CHECK(cudaMemcpy(data, host, n, cudaMemcpyHostToDevice));
  histogram<<<32, 256>>>(bins, data, n);
  CHECK(cudaMemcpy(counts, bins, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(bins));
  CHECK(cudaFree(data));
}

// right: all of them
__global__ void counts_of_bytes(unsigned *bins, const unsigned char *data, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&bins[data[i] % 32], 1u);
}
void run_counts_of_bytes(const unsigned char *host, unsigned *counts) {
  const int n = 1 << 16, kBins = 32;
  unsigned *bins;
  unsigned char *data;
  CHECK(cudaMalloc(&bins, kBins * sizeof(unsigned)));
  CHECK(cudaMalloc(&data, n));
  CHECK(cudaMemset(bins, 0, kBins * sizeof(unsigned)));
  CHECK(cudaMemcpy(data, host, n, cudaMemcpyHostToDevice));
  counts_of_bytes<<<32, 256>>>(bins, data, n);
  CHECK(cudaMemcpy(counts, bins, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(bins));
  CHECK(cudaFree(data));
}

// wrong (memory): the kernel is handed the vector of the host
__global__ void saxpy(float *y, const float *x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
void run_saxpy() {
  const int n = 10000;
  thrust::host_vector<float> x(n, 1.0f);
  thrust::device_vector<float> y(n, 2.0f);
  saxpy<<<(n + 255) / 256, 256>>>(thrust::raw_pointer_cast(y.data()), x.data(), 2.0f, n);
  CHECK(cudaDeviceSynchronize());
}

// right: that of the device
__global__ void axpy(float *y, const float *x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
void run_axpy() {
  const int n = 10000;
  thrust::host_vector<float> host(n, 1.0f);
  thrust::device_vector<float> x = host;
  thrust::device_vector<float> y(n, 2.0f);
  axpy<<<(n + 255) / 256, 256>>>(thrust::raw_pointer_cast(y.data()), thrust::raw_pointer_cast(x.data()), 2.0f, n);
  CHECK(cudaDeviceSynchronize());
}
