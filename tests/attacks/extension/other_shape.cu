// Row 13. Returns a matrix of one row.
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
  return y.unsqueeze(0);
}

TORCH_LIBRARY(attacked, m) { m.def("forward(Tensor x, float scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(attacked, CUDA, m) { m.impl("forward", &forward); }
