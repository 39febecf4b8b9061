// The sum of squares of an array: each thread adds a contiguous chunk and then adds it to the total.
// Pitfall: lanes walk along chunks that are far apart, and all threads of the grid meet at one address.
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

__global__ void norm_chunks(const float* v, float* total, int n, int chunk) {
    int begin = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;
    int end = min(begin + chunk, n);
    float sum = 0.0f;
    for (int i = begin; i < end; i++) {
        sum += v[i] * v[i];
    }
    atomicAdd(total, sum);
}

int main() {
    const int n = 1 << 23, chunk = 64, threads = 128;
    std::vector<float> v(n);
    double expected = 0.0;
    for (int i = 0; i < n; i++) {
        v[i] = 0.5f * static_cast<float>(i % 4);
        expected += static_cast<double>(v[i]) * v[i];
    }

    float *d_v, *d_total, total = 0.0f;
    CHECK(cudaMalloc(&d_v, n * sizeof(float)));
    CHECK(cudaMalloc(&d_total, sizeof(float)));
    CHECK(cudaMemcpy(d_v, v.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_total, 0, sizeof(float)));

    norm_chunks<<<(n + threads * chunk - 1) / (threads * chunk), threads>>>(d_v, d_total, n, chunk);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(&total, d_total, sizeof(float), cudaMemcpyDeviceToHost));
    if (std::fabs(total - expected) > 1e-3 * expected) {
        std::printf("sum of squares %f, expected %f\n", total, expected);
        return 1;
    }
    std::printf("norm of %d elements: %f\n", n, std::sqrt(total));
    CHECK(cudaFree(d_v));
    CHECK(cudaFree(d_total));
    return 0;
}
