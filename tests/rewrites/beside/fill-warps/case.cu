__global__ void ramp(float *c, int n) {
  n = n / 2;
  c[blockIdx.x] = 0.5f * n;
}

void run(float *c, int n) {
  ramp<<<n, 1>>>(c, n);
}
