// One-dimensional stencil whose arrays have a halo, handed over behind it.
#define RADIUS 3
#define BLOCK_SIZE 16
#define N 4096
__global__ void stencil_1d(const int *in, int *out) {
  __shared__ int temp[BLOCK_SIZE + 2 * RADIUS];
  int gindex = threadIdx.x + blockIdx.x * blockDim.x;
  int lindex = threadIdx.x + RADIUS;
  temp[lindex] = in[gindex];
  if (threadIdx.x < RADIUS) {
    temp[lindex - RADIUS] = in[gindex - RADIUS];
    temp[lindex + BLOCK_SIZE] = in[gindex + BLOCK_SIZE];
  }
  __syncthreads();
  int result = 0;
  for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[lindex + offset];
  out[gindex] = result;
}
int main() {
  int *d_in, *d_out;
  int size = (N + 2 * RADIUS) * sizeof(int);
  cudaMalloc((void **)&d_in, size);
  cudaMalloc((void **)&d_out, size);
  stencil_1d<<<N / BLOCK_SIZE, BLOCK_SIZE>>>(d_in + RADIUS, d_out + RADIUS);
  cudaDeviceSynchronize();
}
