// Row 17. Waits for its input, works on a stream of its own, and does not say when it is done.
#include <cuda_runtime.h>
#include <torch/types.h>
#include <torch/library.h>

__global__ void smooth(const float* x, float* y, int n, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i] / (1.0f + x[i] * x[i]);
}

at::Tensor forward(at::Tensor x, double scale) {
  static cudaStream_t own = nullptr;
  static cudaEvent_t ready = nullptr;
  if (!own) {
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  }
  int n = x.numel();
  at::Tensor y = at::empty_like(x);
  cudaEventRecord(ready, 0);
  cudaStreamWaitEvent(own, ready, 0);
  smooth<<<(n + 255) / 256, 256, 0, own>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, scale);
  return y;
}

TORCH_LIBRARY(attacked, m) { m.def("forward(Tensor x, float scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(attacked, CUDA, m) { m.impl("forward", &forward); }
