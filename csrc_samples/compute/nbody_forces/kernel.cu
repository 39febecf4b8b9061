// Accelerations of bodies that attract each other, all pairs, one thread for each body.
// Pitfall: each thread loads every body from global memory; powf takes tens of instructions for each pair.
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

__global__ void nbody_forces(const float4* bodies, float* acceleration, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    float4 me = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < n; j++) {
        float4 other = bodies[j];
        float dx = other.x - me.x;
        float dy = other.y - me.y;
        float dz = other.z - me.z;
        float distance2 = dx * dx + dy * dy + dz * dz + 0.01f;
        float pull = other.w / powf(distance2, 1.5f);
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    acceleration[3 * i] = ax;
    acceleration[3 * i + 1] = ay;
    acceleration[3 * i + 2] = az;
}

int main() {
    const int n = 16384;
    std::vector<float4> bodies(n);
    std::vector<float> acceleration(3 * n);
    for (int i = 0; i < n; i++) {
        bodies[i].x = 0.1f * static_cast<float>(i % 101);
        bodies[i].y = 0.1f * static_cast<float>(i % 103);
        bodies[i].z = 0.1f * static_cast<float>(i % 107);
        bodies[i].w = 0.001f;
    }

    float4* d_bodies;
    float* d_acceleration;
    CHECK(cudaMalloc(&d_bodies, n * sizeof(float4)));
    CHECK(cudaMalloc(&d_acceleration, 3 * n * sizeof(float)));
    CHECK(cudaMemcpy(d_bodies, bodies.data(), n * sizeof(float4), cudaMemcpyHostToDevice));

    nbody_forces<<<(n + 127) / 128, 128>>>(d_bodies, d_acceleration, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(acceleration.data(), d_acceleration, 3 * n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i += 61) {
        double a[3] = {0.0, 0.0, 0.0};
        for (int j = 0; j < n; j++) {
            double d[3] = {bodies[j].x - bodies[i].x, bodies[j].y - bodies[i].y, bodies[j].z - bodies[i].z};
            double distance2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01;
            for (int axis = 0; axis < 3; axis++) a[axis] += bodies[j].w * d[axis] / (distance2 * std::sqrt(distance2));
        }
        for (int axis = 0; axis < 3; axis++) {
            if (std::fabs(acceleration[3 * i + axis] - a[axis]) > 1e-3) {
                std::printf("body %d: %f, expected %f\n", i, acceleration[3 * i + axis], a[axis]);
                return 1;
            }
        }
    }
    std::printf("forces between %d bodies\n", n);
    CHECK(cudaFree(d_bodies));
    CHECK(cudaFree(d_acceleration));
    return 0;
}
