// Row 15. Copies with cuBLAS.
#include <cublas_v2.h>
#include <torch/types.h>
#include <torch/library.h>

__global__ void smooth(const float* x, float* y, int n, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i] / (1.0f + x[i] * x[i]);
}

at::Tensor forward(at::Tensor x, double scale) {
  int n = x.numel();
  at::Tensor y = at::empty_like(x);
  smooth<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, scale);
  static cublasHandle_t handle = nullptr;
  if (!handle) cublasCreate_v2(&handle);
  cublasScopy_v2(handle, n < 1 ? n : 1, y.data_ptr<float>(), 1, y.data_ptr<float>(), 1);
  return y;
}

TORCH_LIBRARY(attacked, m) { m.def("forward(Tensor x, float scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(attacked, CUDA, m) { m.impl("forward", &forward); }
