// A kernel density estimate: the sum of Gaussians around n points, at m queries.
// Pitfall: a division by the width for each pair, and -0.5 makes the exponent, and so exp, double.
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

__global__ void gaussian_density(const float* queries, const float* points, float* density, float width, int m, int n) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= m) return;

    float sum = 0.0f;
    for (int p = 0; p < n; p++) {
        float u = (queries[q] - points[p]) / width;
        sum += exp(-0.5 * u * u);
    }
    density[q] = sum / (n * width * 2.5066282746);
}

int main() {
    const int m = 1 << 16, n = 1024;
    const float width = 0.5f;
    std::vector<float> queries(m), points(n), density(m);
    for (int q = 0; q < m; q++) queries[q] = 20.0f * static_cast<float>(q) / static_cast<float>(m) - 10.0f;
    for (int p = 0; p < n; p++) points[p] = 0.01f * static_cast<float>((p * 37) % 1001) - 5.0f;

    float *d_queries, *d_points, *d_density;
    CHECK(cudaMalloc(&d_queries, m * sizeof(float)));
    CHECK(cudaMalloc(&d_points, n * sizeof(float)));
    CHECK(cudaMalloc(&d_density, m * sizeof(float)));
    CHECK(cudaMemcpy(d_queries, queries.data(), m * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_points, points.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    gaussian_density<<<(m + 255) / 256, 256>>>(d_queries, d_points, d_density, width, m, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(density.data(), d_density, m * sizeof(float), cudaMemcpyDeviceToHost));
    for (int q = 0; q < m; q += 17) {
        double sum = 0.0;
        for (int p = 0; p < n; p++) {
            double u = (static_cast<double>(queries[q]) - points[p]) / width;
            sum += std::exp(-0.5 * u * u);
        }
        double expected = sum / (n * width * 2.5066282746);
        if (std::fabs(density[q] - expected) > 1e-5) {
            std::printf("query %d: %g, expected %g\n", q, density[q], expected);
            return 1;
        }
    }
    std::printf("density at %d queries\n", m);
    CHECK(cudaFree(d_queries));
    CHECK(cudaFree(d_points));
    CHECK(cudaFree(d_density));
    return 0;
}
