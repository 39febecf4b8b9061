// C = A^T * B, where A is stored as k x m and B as k x n, both by rows; threadIdx.x runs down the rows of C.
// Pitfall: neighbouring lanes store a row of C apart; B is loaded at one address by the whole warp.
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

__global__ void matmul_at_b(const float* a, const float* b, float* c, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < m && j < n) {
        float sum = 0.0f;
        for (int p = 0; p < k; p++) sum += a[p * m + i] * b[p * n + j];
        c[i * n + j] = sum;
    }
}

int main() {
    const int m = 1024, n = 2048, k = 256;
    std::vector<float> a(k * m), b(k * n), c(m * n);
    for (int i = 0; i < k * m; i++) a[i] = static_cast<float>(i % 5) - 2.0f;
    for (int i = 0; i < k * n; i++) b[i] = static_cast<float>(i % 9) - 4.0f;

    float *d_a, *d_b, *d_c;
    CHECK(cudaMalloc(&d_a, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_b, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_c, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(32, 8);
    dim3 grid((m + 31) / 32, (n + 7) / 8);
    matmul_at_b<<<grid, block>>>(d_a, d_b, d_c, m, n, k);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(c.data(), d_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; i += 31) {
        for (int j = 0; j < n; j++) {
            float expected = 0.0f;
            for (int p = 0; p < k; p++) expected += a[p * m + i] * b[p * n + j];
            if (std::fabs(c[i * n + j] - expected) > 1e-2f) {
                std::printf("row %d, column %d: %f, expected %f\n", i, j, c[i * n + j], expected);
                return 1;
            }
        }
    }
    std::printf("multiplied %d x %d by %d x %d\n", m, k, k, n);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    return 0;
}
