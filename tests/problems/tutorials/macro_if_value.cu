// Which of several values a macro has is decided by another.
#define VERSION 3
#if VERSION == 1
#define BX 8
#define BY 8
#elif VERSION == 2
#define BX 64
#define BY 16
#else
#define BX 32
#define BY 4
#endif
#define CEIL(a, b) (((a) + (b)-1) / (b))
__global__ void smooth(float *out, const float *in, int w, int h) {
  __shared__ float tile[BY + 2][BX + 2];
  int gx = blockIdx.x * BX + threadIdx.x, gy = blockIdx.y * BY + threadIdx.y;
  int lx = threadIdx.x + 1, ly = threadIdx.y + 1;
  int cx = min(gx, w - 1), cy = min(gy, h - 1);
  tile[ly][lx] = in[cy * w + cx];
  if (threadIdx.x == 0) tile[ly][0] = in[cy * w + max(cx - 1, 0)];
  if (threadIdx.x == BX - 1) tile[ly][BX + 1] = in[cy * w + min(cx + 1, w - 1)];
  if (threadIdx.y == 0) tile[0][lx] = in[max(cy - 1, 0) * w + cx];
  if (threadIdx.y == BY - 1) tile[BY + 1][lx] = in[min(cy + 1, h - 1) * w + cx];
  __syncthreads();
  if (gx < w && gy < h)
    out[gy * w + gx] = 0.2f * (tile[ly][lx] + tile[ly][lx - 1] + tile[ly][lx + 1] + tile[ly - 1][lx] + tile[ly + 1][lx]);
}
int main() {
  const int w = 500, h = 300;
  float *in, *out;
  cudaMalloc(&in, w * h * sizeof(float));
  cudaMalloc(&out, w * h * sizeof(float));
  smooth<<<dim3(CEIL(w, BX), CEIL(h, BY)), dim3(BX, BY)>>>(out, in, w, h);
  cudaDeviceSynchronize();
}
