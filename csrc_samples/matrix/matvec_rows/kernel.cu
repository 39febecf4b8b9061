// y = A * x for a matrix that is stored by rows, one thread for each row.
// Pitfall: neighbouring lanes read neighbouring rows, a whole row apart.
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

__global__ void matvec_rows(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, int m,
                            int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < m) {
        float dot = 0.f;
        for (int j = 0; j < n; ++j) dot += a[i * n + j] * x[j];
        y[i] = dot;
    }
}

int main() {
    const int m = 8192, n = 1024;
    std::vector<float> a(m * n), x(n), y(m);
    for (int i = 0; i < m * n; ++i) a[i] = static_cast<float>(i % 9) - 4.f;
    for (int j = 0; j < n; ++j) x[j] = static_cast<float>(j % 4);

    float *d_a, *d_x, *d_y;
    CHECK(cudaMalloc(&d_a, m * n * sizeof(float)));
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_y, m * sizeof(float)));
    CHECK(cudaMemcpy(d_a, a.data(), m * n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    matvec_rows<<<(m + 255) / 256, 256>>>(d_a, d_x, d_y, m, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, m * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; ++i) {
        float expected = 0.f;
        for (int j = 0; j < n; ++j) expected += a[i * n + j] * x[j];
        if (std::fabs(y[i] - expected) > 1e-2f) {
            std::printf("row %d: %f, expected %f\n", i, y[i], expected);
            return 1;
        }
    }
    std::printf("multiplied %d x %d by a vector\n", m, n);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return 0;
}
