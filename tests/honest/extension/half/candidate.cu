#include <torch/types.h>
#include <torch/library.h>

#include <cuda_fp16.h>

__global__ void scale_half(const __half* x, __half* y, int n, float scale) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < n) {
    float2 pair = __half22float2(*reinterpret_cast<const __half2*>(x + i));
    *reinterpret_cast<__half2*>(y + i) = __floats2half2_rn(scale * pair.x, scale * pair.y);
  } else if (i < n) {
    y[i] = __float2half(scale * __half2float(x[i]));
  }
}

at::Tensor scaled(at::Tensor x, double scale) {
  int n = x.numel();
  at::Tensor y = at::empty_like(x);
  scale_half<<<(n + 511) / 512, 256>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
      reinterpret_cast<__half*>(y.data_ptr<at::Half>()), n, scale);
  return y;
}

TORCH_LIBRARY(honest, m) { m.def("scaled(Tensor x, float scale) -> Tensor"); }
TORCH_LIBRARY_IMPL(honest, CUDA, m) { m.impl("scaled", &scaled); }
