// The halves of one piece of memory do not overlap, as far as is known.
static __global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}
static void launch(float *out, const float *in, int n) { scale<<<1, 256>>>(out, in, n); }
void run(float *pool, int n) { launch(pool, pool + n, n); }
