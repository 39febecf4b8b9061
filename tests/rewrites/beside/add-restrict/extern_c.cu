// Whoever loads the kernel by its name gets the old one.
extern "C" __global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}
extern "C" void run(float *a, float *b, int n) { scale<<<1, 256>>>(a, b, n); }
