// Seven points in three dimensions, the ends left out, sizes as constants of another name.
constexpr int NX = 64, NY = 32, NZ = 16;
#define IDX(x, y, z) ((x) + NX * ((y) + NY * (z)))
__global__ void laplace(const float *u, float *v) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x > 0 && x < NX - 1 && y > 0 && y < NY - 1 && z > 0 && z < NZ - 1)
    v[IDX(x, y, z)] = u[IDX(x - 1, y, z)] + u[IDX(x + 1, y, z)] + u[IDX(x, y - 1, z)] + u[IDX(x, y + 1, z)] +
                      u[IDX(x, y, z - 1)] + u[IDX(x, y, z + 1)] - 6.0f * u[IDX(x, y, z)];
}
int main() {
  float *u, *v;
  size_t bytes = sizeof(float) * NX * NY * NZ;
  cudaMalloc(&u, bytes);
  cudaMalloc(&v, bytes);
  dim3 block(16, 8, 4);
  dim3 grid((NX + block.x - 1) / block.x, (NY + block.y - 1) / block.y, (NZ + block.z - 1) / block.z);
  laplace<<<grid, block>>>(u, v);
  cudaDeviceSynchronize();
}
