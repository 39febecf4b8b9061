// Evaluates a polynomial of degree 7 at n points.
// Pitfall: powf for each term, with an exponent from the loop, and the coefficient from global memory.
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

constexpr int TERMS = 8;

__global__ void polynomial(const float* x, const float* coefficients, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    float sum = coefficients[0];
    for (int t = 1; t < TERMS; t++) {
        sum += coefficients[t] * powf(x[i], t);
    }
    y[i] = sum;
}

int main() {
    const int n = 1 << 22;
    const float coefficients[TERMS] = {1.0f, -0.5f, 0.25f, 2.0f, -1.0f, 0.125f, 0.0625f, 0.5f};
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = 0.001f * static_cast<float>(i % 2003) - 1.0f;

    float *d_x, *d_coefficients, *d_y;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_coefficients, sizeof(coefficients)));
    CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_coefficients, coefficients, sizeof(coefficients), cudaMemcpyHostToDevice));

    polynomial<<<(n + 255) / 256, 256>>>(d_x, d_coefficients, d_y, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double expected = 0.0;
        for (int t = TERMS - 1; t >= 0; t--) expected = expected * x[i] + coefficients[t];
        if (std::fabs(y[i] - expected) > 1e-4) {
            std::printf("point %d: %f, expected %f\n", i, y[i], expected);
            return 1;
        }
    }
    std::printf("evaluated %d points\n", n);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_coefficients));
    CHECK(cudaFree(d_y));
    return 0;
}
