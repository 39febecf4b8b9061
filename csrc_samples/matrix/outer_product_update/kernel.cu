// Adds the outer product of two vectors to a matrix (a rank-1 update); each thread walks down a column's rows.
// Pitfall: u[col] is loaded at every iteration, since the stores to the matrix may change it, as far as nvcc knows.
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

__global__ void rank_one_update(float* matrix, const float* u, const float* v, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        matrix[row * cols + col] += u[col] * v[row];
    }
}

int main() {
    const int rows = 2048, cols = 4096;
    std::vector<float> matrix(rows * cols), updated(rows * cols), u(cols), v(rows);
    for (int i = 0; i < rows * cols; i++) matrix[i] = static_cast<float>(i % 50);
    for (int c = 0; c < cols; c++) u[c] = static_cast<float>(c % 6) - 2.0f;
    for (int r = 0; r < rows; r++) v[r] = 0.5f * static_cast<float>(r % 9);

    float *d_matrix, *d_u, *d_v;
    CHECK(cudaMalloc(&d_matrix, matrix.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_u, cols * sizeof(float)));
    CHECK(cudaMalloc(&d_v, rows * sizeof(float)));
    CHECK(cudaMemcpy(d_matrix, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_u, u.data(), cols * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_v, v.data(), rows * sizeof(float), cudaMemcpyHostToDevice));

    dim3 grid((cols + 127) / 128, 32);
    rank_one_update<<<grid, 128>>>(d_matrix, d_u, d_v, rows, cols);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(updated.data(), d_matrix, updated.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            float expected = matrix[r * cols + c] + u[c] * v[r];
            if (std::fabs(updated[r * cols + c] - expected) > 1e-4f) {
                std::printf("row %d, column %d: %f, expected %f\n", r, c, updated[r * cols + c], expected);
                return 1;
            }
        }
    }
    std::printf("updated %d x %d\n", rows, cols);
    CHECK(cudaFree(d_matrix));
    CHECK(cudaFree(d_u));
    CHECK(cudaFree(d_v));
    return 0;
}
