// Two instances whose arguments are computed from constants; elements of a two-dimensional array type and of a `using`.
#include <cstdint>
constexpr int kRows = 4;
enum { WIDTH = 64 };
using Pixel = std::uint8_t;
using Image = Pixel;
template <typename T, int W, int R>
__global__ void columns(std::int32_t *sums, const T *image, int height) {
  __shared__ std::int32_t part[R][W];
  int x = threadIdx.x, r = threadIdx.y;
  std::int32_t sum = 0;
  for (int y = blockIdx.x * R + r; y < height; y += gridDim.x * R) sum += image[y * W + x];
  part[r][x] = sum;
  __syncthreads();
  if (r == 0) {
    for (int k = 1; k < R; k++) sum += part[k][x];
    atomicAdd(&sums[x], sum);
  }
}
int main() {
  const int height = 480;
  Image *image;
  std::int32_t *sums;
  cudaMalloc((void **)&image, sizeof(Image) * WIDTH * height);
  cudaMalloc((void **)&sums, sizeof(*sums) * 2 * WIDTH);
  cudaMemset(sums, 0, sizeof(*sums) * 2 * WIDTH);
  columns<Image, WIDTH, kRows><<<8, dim3(WIDTH, kRows)>>>(sums, image, height);
  columns<Pixel, WIDTH / 2, 2 * kRows><<<8, dim3(WIDTH / 2, 2 * kRows)>>>(sums, image, 2 * height);
  return cudaDeviceSynchronize();
}
