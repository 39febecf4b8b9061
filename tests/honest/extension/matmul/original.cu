#include <torch/types.h>
#include <torch/library.h>

__global__ void multiply(const float* a, const float* b, float* c, int n, int m, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * m + column];
  c[row * m + column] = sum;
}

at::Tensor multiply_matrices(at::Tensor a, at::Tensor b) {
  int n = a.size(0), k = a.size(1), m = b.size(1);
  at::Tensor c = at::empty({n, m}, a.options());
  multiply<<<dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(a.data_ptr<float>(), b.data_ptr<float>(),
                                                                  c.data_ptr<float>(), n, m, k);
  return c;
}

TORCH_LIBRARY(honest, m) { m.def("multiply(Tensor a, Tensor b) -> Tensor", &multiply_matrices); }
