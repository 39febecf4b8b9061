// The largest element of each row, a block for each row.
// Pitfall: the tree is walked with a modulo, so the threads that still work lie 2, 4, 8, ... apart in every warp.
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

__global__ void row_max(const float* matrix, float* largest, int rows, int cols) {
    __shared__ float best[128];
    int row = blockIdx.x;
    int lane = threadIdx.x;

    float mine = -3.4e38f;
    for (int c = lane; c < cols; c += 128) {
        float v = matrix[row * cols + c];
        if (v > mine) mine = v;
    }
    best[lane] = mine;
    __syncthreads();

    for (int step = 2; step <= 128; step *= 2) {
        if (lane % step == 0) {
            best[lane] = fmaxf(best[lane], best[lane + step / 2]);
        }
        __syncthreads();
    }
    if (lane == 0) largest[row] = best[0];
}

int main() {
    const int rows = 16384, cols = 512;
    std::vector<float> matrix(rows * cols), largest(rows);
    for (int i = 0; i < rows * cols; i++) matrix[i] = static_cast<float>((i * 37) % 10007) - 5000.0f;

    float *d_matrix, *d_largest;
    CHECK(cudaMalloc(&d_matrix, matrix.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_largest, rows * sizeof(float)));
    CHECK(cudaMemcpy(d_matrix, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice));

    row_max<<<rows, 128>>>(d_matrix, d_largest, rows, cols);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(largest.data(), d_largest, rows * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        float expected = matrix[row * cols];
        for (int c = 1; c < cols; c++) {
            if (matrix[row * cols + c] > expected) expected = matrix[row * cols + c];
        }
        if (largest[row] != expected) {
            std::printf("row %d: %f, expected %f\n", row, largest[row], expected);
            return 1;
        }
    }
    std::printf("largest elements of %d rows\n", rows);
    CHECK(cudaFree(d_matrix));
    CHECK(cudaFree(d_largest));
    return 0;
}
