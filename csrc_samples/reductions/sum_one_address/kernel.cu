// Sums an array into one float.
// Pitfall: every thread adds to the same address with an atomic, so all additions of the grid wait for each other.
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

__global__ void sum_one_address(const float* values, float* total, int n) {
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    if (tid < n) {
        atomicAdd(total, values[tid]);
    }
}

int main() {
    const int n = 1 << 22;
    std::vector<float> values(n);
    double expected = 0.0;
    for (int i = 0; i < n; i++) {
        values[i] = static_cast<float>(i % 3);
        expected += values[i];
    }

    float *d_values, *d_total;
    CHECK(cudaMalloc(&d_values, n * sizeof(float)));
    CHECK(cudaMalloc(&d_total, sizeof(float)));
    CHECK(cudaMemcpy(d_values, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_total, 0, sizeof(float)));

    sum_one_address<<<(n + 255) / 256, 256>>>(d_values, d_total, n);
    CHECK(cudaGetLastError());

    float total = 0.0f;
    CHECK(cudaMemcpy(&total, d_total, sizeof(float), cudaMemcpyDeviceToHost));
    if (std::fabs(total - expected) > 1e-3 * expected) {
        std::printf("sum %f, expected %f\n", total, expected);
        return 1;
    }
    std::printf("sum of %d elements: %.0f\n", n, total);
    CHECK(cudaFree(d_values));
    CHECK(cudaFree(d_total));
    return 0;
}
