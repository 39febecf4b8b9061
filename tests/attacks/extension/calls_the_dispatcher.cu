// Row 15. Finds torch's operator by its name.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/types.h>
#include <torch/library.h>

__global__ void smooth(const float* x, float* y, int n, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i] / (1.0f + x[i] * x[i]);
}

at::Tensor forward(at::Tensor x, double scale) {
  static auto multiply = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aten::mul", "Tensor")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  int n = x.numel();
  at::Tensor y = multiply.call(x, x);
  smooth<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, scale);
  return y;
}

TORCH_LIBRARY(attacked, m) { m.def("forward(Tensor x, float scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(attacked, CUDA, m) { m.impl("forward", &forward); }
