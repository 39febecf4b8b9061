// C = A * B through 32 x 32 tiles in shared memory; the tile of B is kept transposed.
// Pitfall: a warp stores a row of B into a column of its tile, 32 floats apart, and reads it back so: 32-way conflicts.
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

#define TILE 32

__global__ void matmul_tiled(const float* A, const float* B, float* C, int m, int n, int k) {
    __shared__ float sA[TILE][TILE];
    __shared__ float sBt[TILE][TILE];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;

    float acc = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        sA[ty][tx] = (row < m && start + tx < k) ? A[row * k + start + tx] : 0.0f;
        sBt[tx][ty] = (start + ty < k && col < n) ? B[(start + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int p = 0; p < TILE; p++) acc += sA[ty][p] * sBt[tx][p];
        __syncthreads();
    }
    if (row < m && col < n) C[row * n + col] = acc;
}

int main() {
    const int m = 1024, n = 1024, k = 512;
    std::vector<float> A(m * k), B(k * n), C(m * n);
    for (int i = 0; i < m * k; i++) A[i] = static_cast<float>(i % 11) - 5.0f;
    for (int i = 0; i < k * n; i++) B[i] = static_cast<float>(i % 3) - 1.0f;

    float *d_A, *d_B, *d_C;
    CHECK(cudaMalloc(&d_A, A.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_B, B.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_C, C.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_A, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_B, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(TILE, TILE);
    dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    matmul_tiled<<<grid, block>>>(d_A, d_B, d_C, m, n, k);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(C.data(), d_C, C.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < m; row += 41) {
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
