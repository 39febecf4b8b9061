// One Jacobi sweep of the Poisson equation on a cubic grid; a thread walks along x, the axis that memory runs along.
// Pitfall: neighbouring lanes are neighbours in y, a whole line apart.
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

__global__ void jacobi_sweep(const float* u, const float* f, float* v, int nx, int ny, int nz) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int k = blockIdx.y;
    if (j < 1 || j >= ny - 1 || k < 1 || k >= nz - 1) return;

    for (int i = 1; i < nx - 1; i++) {
        int at = (k * ny + j) * nx + i;
        v[at] = (u[at - 1] + u[at + 1] + u[at - nx] + u[at + nx] + u[at - nx * ny] + u[at + nx * ny] - f[at]) / 6.0f;
    }
}

int main() {
    const int nx = 256, ny = 256, nz = 128;
    const int n = nx * ny * nz;
    std::vector<float> u(n), f(n), v(n);
    for (int i = 0; i < n; i++) {
        u[i] = static_cast<float>(i % 31);
        f[i] = static_cast<float>(i % 3);
    }

    float *d_u, *d_f, *d_v;
    CHECK(cudaMalloc(&d_u, n * sizeof(float)));
    CHECK(cudaMalloc(&d_f, n * sizeof(float)));
    CHECK(cudaMalloc(&d_v, n * sizeof(float)));
    CHECK(cudaMemcpy(d_u, u.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_f, f.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_v, d_u, n * sizeof(float), cudaMemcpyDeviceToDevice));

    dim3 grid((ny + 63) / 64, nz);
    jacobi_sweep<<<grid, 64>>>(d_u, d_f, d_v, nx, ny, nz);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(v.data(), d_v, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int k = 0; k < nz; k++) {
        for (int j = 0; j < ny; j++) {
            for (int i = 0; i < nx; i++) {
                int at = (k * ny + j) * nx + i;
                float expected = u[at];
                if (i > 0 && j > 0 && k > 0 && i < nx - 1 && j < ny - 1 && k < nz - 1) {
                    float around = u[at - 1] + u[at + 1] + u[at - nx] + u[at + nx];
                    expected = (around + u[at - nx * ny] + u[at + nx * ny] - f[at]) / 6.0f;
                }
                if (std::fabs(v[at] - expected) > 1e-4f) {
                    std::printf("cell (%d, %d, %d): %f, expected %f\n", i, j, k, v[at], expected);
                    return 1;
                }
            }
        }
    }
    std::printf("one sweep over %d cells\n", n);
    CHECK(cudaFree(d_u));
    CHECK(cudaFree(d_f));
    CHECK(cudaFree(d_v));
    return 0;
}
