// Addresses outside of their arrays in the styles of public kernels: lambdas, guards of images, tiles, histograms.
#include <cuda_runtime.h>

// wrong (bounds): the guard asks for the height where the width is, and the other way round
__global__ void to_grey(unsigned char *grey, const uchar3 *rgb, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= height || y >= width) return;
  const uchar3 p = rgb[y * width + x];
  grey[y * width + x] = static_cast<unsigned char>(0.299f * p.x + 0.587f * p.y + 0.114f * p.z);
}
void run_to_grey(const uchar3 *host) {
  const int width = 640, height = 360;
  uchar3 *rgb;
  unsigned char *grey;
  cudaMalloc(&rgb, width * height * sizeof(uchar3));
  cudaMalloc(&grey, width * height);
  cudaMemcpy(rgb, host, width * height * sizeof(uchar3), cudaMemcpyHostToDevice);
  const dim3 block(16, 16), grid((width + 15) / 16, (width + 15) / 16);
  to_grey<<<grid, block>>>(grey, rgb, width, height);
  cudaDeviceSynchronize();
  cudaFree(rgb);
  cudaFree(grey);
}

// right: each asks for its own
__global__ void to_luma(unsigned char *grey, const uchar3 *rgb, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const uchar3 p = rgb[y * width + x];
  grey[y * width + x] = static_cast<unsigned char>(0.299f * p.x + 0.587f * p.y + 0.114f * p.z);
}
void run_to_luma(const uchar3 *host) {
  const int width = 640, height = 360;
  uchar3 *rgb;
  unsigned char *grey;
  cudaMalloc(&rgb, width * height * sizeof(uchar3));
  cudaMalloc(&grey, width * height);
  cudaMemcpy(rgb, host, width * height * sizeof(uchar3), cudaMemcpyHostToDevice);
  const dim3 block(16, 16), grid((width + 15) / 16, (width + 15) / 16);
  to_luma<<<grid, block>>>(grey, rgb, width, height);
  cudaDeviceSynchronize();
  cudaFree(rgb);
  cudaFree(grey);
}

// wrong (bounds): the differences of neighbours are one fewer than the elements
template <typename Body>
__global__ void parallel_for(int n, Body body) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) body(i);
}
struct Difference {
  float *out;
  const float *in;
  __device__ void operator()(int i) const { out[i] = in[i + 1] - in[i]; }
};
void run_difference(const float *host) {
  const int n = 4096;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  Difference difference{out, in};
  parallel_for<<<16, 128>>>(n, difference);
  cudaDeviceSynchronize();
  cudaFree(in);
  cudaFree(out);
}

// right: one turn fewer
template <typename Body>
__global__ void for_all(int n, Body body) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) body(i);
}
struct Step {
  float *out;
  const float *in;
  __device__ void operator()(int i) const { out[i] = in[i + 1] - in[i]; }
};
void run_step(const float *host) {
  const int n = 4096;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  Step step{out, in};
  for_all<<<16, 128>>>(n - 1, step);
  cudaDeviceSynchronize();
  cudaFree(in);
  cudaFree(out);
}
