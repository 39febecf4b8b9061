// Sparse matrix times vector; each row holds the same number of entries, padded with zeros (ELL), row after row.
// Pitfall: a thread walks along its row, so neighbouring lanes read columns and values a whole row apart.
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

__global__ void spmv_ell(const int* columns, const float* values, const float* x, float* y, int rows, int per_row) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        y[row] = 0.0f;
        for (int e = 0; e < per_row; e++) {
            y[row] += values[row * per_row + e] * x[columns[row * per_row + e]];
        }
    }
}

int main() {
    const int rows = 1 << 18, per_row = 16;
    std::vector<int> columns(rows * per_row);
    std::vector<float> values(rows * per_row), x(rows), y(rows);
    for (int i = 0; i < rows * per_row; i++) {
        columns[i] = (i / per_row + (i % per_row) * 509) % rows;
        values[i] = static_cast<float>(i % 3) - 1.0f;
    }
    for (int i = 0; i < rows; i++) x[i] = static_cast<float>(i % 10);

    int* d_columns;
    float *d_values, *d_x, *d_y;
    CHECK(cudaMalloc(&d_columns, columns.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_values, values.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_x, rows * sizeof(float)));
    CHECK(cudaMalloc(&d_y, rows * sizeof(float)));
    CHECK(cudaMemcpy(d_columns, columns.data(), columns.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_values, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_x, x.data(), rows * sizeof(float), cudaMemcpyHostToDevice));

    spmv_ell<<<(rows + 127) / 128, 128>>>(d_columns, d_values, d_x, d_y, rows, per_row);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, rows * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        float expected = 0.0f;
        for (int e = row * per_row; e < (row + 1) * per_row; e++) expected += values[e] * x[columns[e]];
        if (std::fabs(y[row] - expected) > 1e-3f) {
            std::printf("row %d: %f, expected %f\n", row, y[row], expected);
            return 1;
        }
    }
    std::printf("multiplied %d rows\n", rows);
    CHECK(cudaFree(d_columns));
    CHECK(cudaFree(d_values));
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return 0;
}
