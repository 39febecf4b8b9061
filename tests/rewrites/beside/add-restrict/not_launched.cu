// Nobody launches it here: the new kernel is there for those who want it.
__global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}
__global__ void other(float *out) { out[threadIdx.x] = 1.0f; }
