#include <torch/extension.h>

__global__ void add_up(const float* x, float* sum, int64_t n) {
  __shared__ float parts[8];
  int64_t step = gridDim.x * static_cast<int64_t>(blockDim.x);
  float own = 0.0f;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) own += x[i];
  for (int lane = 16; lane; lane /= 2) own += __shfl_down_sync(0xffffffffu, own, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < 8; warp++) own += parts[warp];
    atomicAdd(sum, own);
  }
}

torch::Tensor total(torch::Tensor x) {
  auto sum = torch::zeros({1}, x.options());
  int64_t n = x.numel();
  if (n > 0) add_up<<<std::min<int64_t>((n + 255) / 256, 1056), 256>>>(x.data_ptr<float>(), sum.data_ptr<float>(), n);
  return sum;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("total", &total); }
