// Whoever loads the kernel by its name gets the old one.
extern "C" __global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}

// As scale, for the launches in this file: others may launch scale otherwise.
static __global__ void scale_tuned(float *__restrict__ out, const float *__restrict__ in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}

extern "C" void run(float *a, float *b, int n) { scale_tuned<<<1, 256>>>(a, b, n); }
