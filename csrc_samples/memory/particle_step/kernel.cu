// Moves particles that are stored as an array of structs by one time step, one thread for each particle.
// Pitfall: a lane's members lie 32 bytes from its neighbour's, so each request moves eight times its data.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

struct Particle {
    float x, y, z;
    float vx, vy, vz;
    float mass, charge;
};

__global__ void particle_step(Particle* particles, float dt, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    particles[i].x += dt * particles[i].vx;
    particles[i].y += dt * particles[i].vy;
    particles[i].z += dt * particles[i].vz;
}

int main() {
    const int count = 1 << 20;
    const float dt = 0.25f;
    std::vector<Particle> before(count), after(count);
    for (int i = 0; i < count; i++) {
        float f = static_cast<float>(i % 101);
        before[i] = {f, 2.0f * f, -f, 1.0f, -2.0f, 0.5f * f, 1.0f, -1.0f};
    }

    Particle* d_particles;
    CHECK(cudaMalloc(&d_particles, count * sizeof(Particle)));
    CHECK(cudaMemcpy(d_particles, before.data(), count * sizeof(Particle), cudaMemcpyHostToDevice));

    particle_step<<<(count + 127) / 128, 128>>>(d_particles, dt, count);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(after.data(), d_particles, count * sizeof(Particle), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) {
        const Particle& p = before[i];
        if (std::fabs(after[i].x - (p.x + dt * p.vx)) > 1e-4f || std::fabs(after[i].y - (p.y + dt * p.vy)) > 1e-4f ||
            std::fabs(after[i].z - (p.z + dt * p.vz)) > 1e-4f || after[i].mass != p.mass) {
            std::printf("particle %d: %f %f %f\n", i, after[i].x, after[i].y, after[i].z);
            return 1;
        }
    }
    std::printf("moved %d particles\n", count);
    CHECK(cudaFree(d_particles));
    return 0;
}
