__global__ void ramp(float *c, int n) {
  n = n / 2;
  c[blockIdx.x] = 0.5f * n;
}

// As ramp, for the launches in this file: others may launch ramp otherwise.
static __global__ void ramp_tuned(float *c, int n, int n2) {
  if (blockIdx.x * blockDim.x + threadIdx.x >= n2)
    return;
  n = n / 2;
  c[blockIdx.x * blockDim.x + threadIdx.x] = 0.5f * n;
}

void run(float *c, int n) {
  ramp_tuned<<<(n + 255) / 256, 256>>>(c, n, n);
}
