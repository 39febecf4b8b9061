// Who launches it through the pointer is not known.
__global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}
void prefer() { cudaFuncSetCacheConfig(scale, cudaFuncCachePreferL1); }
void run(float *a, float *b, int n) { scale<<<1, 256>>>(a, b, n); }
