#include <torch/types.h>
#include <torch/library.h>

__global__ void gather(const float* table, const int64_t* index, float* out, int rows, int columns, float scale) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  for (int j = 0; j < columns; j++) out[row * columns + j] = scale * table[index[row] * columns + j];
}

at::Tensor gather_rows(const at::Tensor& table, const at::Tensor& index, double scale) {
  int rows = index.numel(), columns = table.size(1);
  at::Tensor out = at::empty({rows, columns}, table.options());
  gather<<<(rows + 255) / 256, 256>>>(table.data_ptr<float>(), index.data_ptr<int64_t>(), out.data_ptr<float>(), rows, columns, scale);
  return out;
}

TORCH_LIBRARY_FRAGMENT(honest, m) { m.def("gather_rows(Tensor table, Tensor index, *, float scale=2.0) -> Tensor"); }
TORCH_LIBRARY_IMPL(honest, CUDA, m) { m.impl("gather_rows", TORCH_FN(gather_rows)); }
