#include <torch/extension.h>

#include <optional>
#include <tuple>

__global__ void layer_norm(const float* x, const float* weight, const float* bias, float* y, float* mean, float* rstd,
                           int rows, int columns, float eps) {
  // One warp for each row.
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* in = x + static_cast<int64_t>(row) * columns;
  float sum = 0.0f, squares = 0.0f;
  for (int j = lane; j < columns; j += 32) sum += in[j];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  float m = sum / columns;
  for (int j = lane; j < columns; j += 32) squares += (in[j] - m) * (in[j] - m);
  for (int step = 16; step; step /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, step);
  float r = rsqrtf(squares / columns + eps);
  for (int j = lane; j < columns; j += 32) {
    y[static_cast<int64_t>(row) * columns + j] = (in[j] - m) * r * weight[j] + (bias ? bias[j] : 0.0f);
  }
  if (lane == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
}

// warpwright: tensor x[rows, columns] float
// warpwright: tensor weight[columns] float
// warpwright: tensor bias[columns] float
// warpwright: shape rows=4096 columns=1024
// warpwright: time rows=4096 columns=1024
// warpwright: time rows=1237 columns=853
std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_forward(at::Tensor x, at::Tensor weight,
                                                                  std::optional<at::Tensor> bias, double eps) {
  auto y = at::empty_like(x);
  int rows = x.size(0), columns = x.size(1);
  auto mean = at::empty({rows}, x.options());
  auto rstd = at::empty({rows}, x.options());
  const float* added = bias.has_value() ? bias->data_ptr<float>() : nullptr;
  layer_norm<<<(rows + 7) / 8, 256>>>(x.data_ptr<float>(), weight.data_ptr<float>(), added,
      y.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), rows, columns, eps);
  return {y, mean, rstd};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &layer_norm_forward, py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(),
        py::arg("eps") = 1e-5);
}
