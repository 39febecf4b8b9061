struct Body {
  float x, y, z, mass;
  float vx, vy, vz, charge;
};

__global__ void push(Body *bodies, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Body *mine = bodies + i;
  bodies[i].x += dt * bodies[i].vx;
  bodies[i].y += dt * bodies[i].vy;
}

void run(Body *bodies, int n) {
  push<<<(n + 127) / 128, 128>>>(bodies, 0.5f, n);
}
