// C = A x B for square matrices that are stored by rows, one thread for each element of C.
// Pitfall: threadIdx.x picks the row, so the lanes of a warp read 32 rows of A and write 32 rows of C.
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

__global__ void matmul(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; k++) {
            sum += a[row * n + k] * b[k * n + column];
        }
        c[row * n + column] = sum;
    }
}

int main() {
    const int n = 512;
    std::vector<float> a(n * n), b(n * n), c(n * n);
    for (int i = 0; i < n * n; i++) {
        a[i] = static_cast<float>(i % 5);
        b[i] = static_cast<float>(i % 3);
    }

    const size_t bytes = sizeof(float) * n * n;
    float *d_a, *d_b, *d_c;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_c, bytes));
    CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y);
    matmul<<<grid, block>>>(d_a, d_b, d_c, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
    for (int row = 0; row < n; row += 37) {
        for (int column = 0; column < n; column++) {
            float expected = 0.0f;
            for (int k = 0; k < n; k++) expected += a[row * n + k] * b[k * n + column];
            if (std::fabs(c[row * n + column] - expected) > 1e-3f * (expected + 1.0f)) {
                std::printf("row %d, column %d: %f, expected %f\n", row, column, c[row * n + column], expected);
                return 1;
            }
        }
    }
    std::printf("multiplied %d x %d matrices\n", n, n);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    return 0;
}
