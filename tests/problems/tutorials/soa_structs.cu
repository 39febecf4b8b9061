// Particles as an array of structs with padding, and as a struct of arrays.
struct Particle {
  double mass;
  float x, y, z;
  char kind;
};
typedef struct {
  float *x;
  float *y;
  int count;
} Soa;
__global__ void move(Particle *p, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p[i].x += dt * (float)p[i].mass;
  p[i].kind = 1;
}
__global__ void split(Soa soa, const Particle *p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < soa.count) {
    soa.x[i] = p[i].x;
    soa.y[i] = p[i].y;
  }
}
int main() {
  int count = 3000;
  Particle *p;
  Soa soa;
  cudaMalloc(&p, count * sizeof(Particle));
  soa.count = count;
  cudaMalloc(&soa.x, count * sizeof(float));
  cudaMalloc(&soa.y, count * sizeof(float));
  move<<<(count + 255) / 256, 256>>>(p, 0.1f, count);
  split<<<(count + 255) / 256, 256>>>(soa, p);
  cudaDeviceSynchronize();
}
