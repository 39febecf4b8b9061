// Sums each row of a matrix that is stored by rows, one thread for each row.
// Pitfall: neighbouring lanes read neighbouring rows, so each load of a warp touches 32 rows: 32 sectors for 128 bytes.
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

__global__ void row_sum(const float* in, float* sums, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;

    float sum = 0.0f;
    for (int column = 0; column < columns; column++) {
        sum += in[row * columns + column];
    }
    sums[row] = sum;
}

int main() {
    const int rows = 4096, columns = 1024;
    std::vector<float> in(rows * columns), sums(rows);
    for (int i = 0; i < rows * columns; i++) in[i] = static_cast<float>(i % 5);

    float *d_in, *d_sums;
    CHECK(cudaMalloc(&d_in, in.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_sums, rows * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));

    row_sum<<<(rows + 255) / 256, 256>>>(d_in, d_sums, rows, columns);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(sums.data(), d_sums, rows * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        float expected = 0.0f;
        for (int column = 0; column < columns; column++) expected += in[row * columns + column];
        if (std::fabs(sums[row] - expected) > 1e-3f) {
            std::printf("row %d: %f, expected %f\n", row, sums[row], expected);
            return 1;
        }
    }
    std::printf("summed %d rows\n", rows);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_sums));
    return 0;
}
