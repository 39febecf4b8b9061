// Elements of a struct of the file's, through a typedef and with an alignment.
typedef struct __align__(16) {
  double re, im;
} Complex;
typedef Complex cplx;
static __device__ __host__ inline cplx mul(cplx a, cplx b) {
  cplx c;
  c.re = a.re * b.re - a.im * b.im;
  c.im = a.re * b.im + a.im * b.re;
  return c;
}
__global__ void multiply(cplx *a, const cplx *b, int size, double scale) {
  const int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride) {
    cplx c = mul(a[i], b[i]);
    c.re *= scale;
    a[i] = c;
  }
}
#define SIGNAL_SIZE 50
#define FILTER_SIZE 11
int main() {
  int new_size = SIGNAL_SIZE + FILTER_SIZE / 2;
  int mem_size = sizeof(Complex) * new_size;
  Complex *a, *b;
  cudaMalloc(reinterpret_cast<void **>(&a), mem_size);
  cudaMalloc(reinterpret_cast<void **>(&b), mem_size);
  multiply<<<32, 256>>>(a, b, new_size, 1.0 / new_size);
  cudaDeviceSynchronize();
}
