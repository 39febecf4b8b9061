// Nobody launches it here: the new kernel is there for those who want it.
__global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}

// As scale, for launches with arrays that do not overlap: others may launch scale otherwise.
__global__ void scale_tuned(float *__restrict__ out, const float *__restrict__ in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}

__global__ void other(float *out) { out[threadIdx.x] = 1.0f; }
