// One explicit step of the heat equation on a grid; the border stays as it is.
// Pitfall: each cell is loaded from global memory by five threads, once as the middle and four times as a neighbour.
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

__global__ void heat_step(const float* t, float* t_next, float r, int nx, int ny) {
    int ix = blockIdx.x * blockDim.x + threadIdx.x;
    int iy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix >= nx || iy >= ny) return;

    int at = iy * nx + ix;
    if (ix == 0 || iy == 0 || ix == nx - 1 || iy == ny - 1) {
        t_next[at] = t[at];
    } else {
        t_next[at] = t[at] + r * (t[at - 1] + t[at + 1] + t[at - nx] + t[at + nx] - 4.0f * t[at]);
    }
}

int main() {
    const int nx = 4096, ny = 2048;
    const float r = 0.2f;
    const size_t bytes = sizeof(float) * nx * ny;
    std::vector<float> t(nx * ny), next(nx * ny);
    for (int i = 0; i < nx * ny; i++) t[i] = static_cast<float>(i % 23);

    float *d_t, *d_next;
    CHECK(cudaMalloc(&d_t, bytes));
    CHECK(cudaMalloc(&d_next, bytes));
    CHECK(cudaMemcpy(d_t, t.data(), bytes, cudaMemcpyHostToDevice));

    dim3 block(32, 8);
    dim3 grid((nx + 31) / 32, (ny + 7) / 8);
    heat_step<<<grid, block>>>(d_t, d_next, r, nx, ny);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(next.data(), d_next, bytes, cudaMemcpyDeviceToHost));
    for (int y = 0; y < ny; y++) {
        for (int x = 0; x < nx; x++) {
            int at = y * nx + x;
            float expected = t[at];
            if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1) {
                expected += r * (t[at - 1] + t[at + 1] + t[at - nx] + t[at + nx] - 4.0f * t[at]);
            }
            if (std::fabs(next[at] - expected) > 1e-4f) {
                std::printf("cell (%d, %d): %f, expected %f\n", x, y, next[at], expected);
                return 1;
            }
        }
    }
    std::printf("one step on %d x %d cells\n", nx, ny);
    CHECK(cudaFree(d_t));
    CHECK(cudaFree(d_next));
    return 0;
}
