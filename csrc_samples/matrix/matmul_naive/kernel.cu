// C = A * B for matrices that are stored by rows, one thread for each element of C.
// Pitfall: nothing is reused: each element of A is loaded n times from memory and each of B m times.
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

__global__ void matmul_naive(const float* A, const float* B, float* C, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        float acc = 0.0f;
        for (int p = 0; p < k; p++) {
            acc += A[row * k + p] * B[p * n + col];
        }
        C[row * n + col] = acc;
    }
}

int main() {
    const int m = 1024, n = 1024, k = 512;
    std::vector<float> A(m * k), B(k * n), C(m * n);
    for (int i = 0; i < m * k; i++) A[i] = static_cast<float>(i % 7) - 3.0f;
    for (int i = 0; i < k * n; i++) B[i] = static_cast<float>(i % 5) - 2.0f;

    float *d_A, *d_B, *d_C;
    CHECK(cudaMalloc(&d_A, m * k * sizeof(float)));
    CHECK(cudaMalloc(&d_B, k * n * sizeof(float)));
    CHECK(cudaMalloc(&d_C, m * n * sizeof(float)));
    CHECK(cudaMemcpy(d_A, A.data(), m * k * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_B, B.data(), k * n * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((n + 15) / 16, (m + 15) / 16);
    matmul_naive<<<grid, block>>>(d_A, d_B, d_C, m, n, k);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(C.data(), d_C, m * n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < m; row += 37) {
        for (int col = 0; col < n; col++) {
            float expected = 0.0f;
            for (int p = 0; p < k; p++) expected += A[row * k + p] * B[p * n + col];
            if (std::fabs(C[row * n + col] - expected) > 1e-2f) {
                std::printf("row %d, column %d: %f, expected %f\n", row, col, C[row * n + col], expected);
                return 1;
            }
        }
    }
    std::printf("multiplied %d x %d by %d x %d\n", m, k, k, n);
    CHECK(cudaFree(d_A));
    CHECK(cudaFree(d_B));
    CHECK(cudaFree(d_C));
    return 0;
}
