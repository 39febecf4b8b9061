// One of the callers hands over one array twice, moved on by an element.
static __global__ void scale(float *out, const float *in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2.0f * in[i];
}
static void launch(float *out, const float *in, int n) {
  const float *from = in;
  scale<<<1, 256>>>(out, from, n);
}
void run(float *a, float *b, int n) {
  launch(a, b, n);
  launch(&a[1], (const float *)a, n);
}
