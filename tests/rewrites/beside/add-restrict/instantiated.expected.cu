// The last line is for other files, which launch the instance as they like.
template <typename T>
__global__ void scale(T *out, const T *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * in[i];
}

// As scale, for the launches in this file: others may launch scale otherwise.
template <typename T>
static __global__ void scale_tuned(T *__restrict__ out, const T *__restrict__ in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * in[i];
}

void run(float *a, float *b, int n) {
  scale_tuned<float><<<1, 256>>>(a, b, n);
}
template __global__ void scale<double>(double *out, const double *in, int n);
