// The tanh approximation of GELU.
// Pitfall: powf(x, 3) takes tens of instructions where two products are enough.
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

__global__ void gelu_pow(const float* __restrict__ x, float* __restrict__ y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        float v = x[i];
        float inner = 0.7978845608f * (v + 0.044715f * powf(v, 3.0f));
        y[i] = 0.5f * v * (1.0f + tanhf(inner));
    }
}

int main() {
    const int n = 1 << 22;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = 0.01f * static_cast<float>(i % 801) - 4.0f;

    float *d_x, *d_y;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    gelu_pow<<<1024, 256>>>(d_x, d_y, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float cube = x[i] * x[i] * x[i];
        float expected = 0.5f * x[i] * (1.0f + std::tanh(0.7978845608f * (x[i] + 0.044715f * cube)));
        if (std::fabs(y[i] - expected) > 1e-4f) {
            std::printf("element %d: %f, expected %f\n", i, y[i], expected);
            return 1;
        }
    }
    std::printf("gelu of %d elements\n", n);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return 0;
}
