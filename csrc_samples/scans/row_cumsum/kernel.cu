// The running sum along each row of a matrix, one thread for each row.
// Pitfall: a serial scan, and neighbouring lanes load and store a whole row apart.
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

__global__ void row_cumsum(const float* in, float* out, int rows, int cols) {
    int r = blockDim.x * blockIdx.x + threadIdx.x;
    if (r < rows) {
        const float* from = in + r * cols;
        float* to = out + r * cols;
        float running = 0.0f;
        for (int c = 0; c < cols; c++) {
            running += from[c];
            to[c] = running;
        }
    }
}

int main() {
    const int rows = 4096, cols = 1024;
    const size_t bytes = sizeof(float) * rows * cols;
    std::vector<float> in(rows * cols), out(rows * cols);
    for (int i = 0; i < rows * cols; i++) in[i] = static_cast<float>(i % 3);

    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));

    row_cumsum<<<(rows + 63) / 64, 64>>>(d_in, d_out, rows, cols);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; r++) {
        float running = 0.0f;
        for (int c = 0; c < cols; c++) {
            running += in[r * cols + c];
            if (std::fabs(out[r * cols + c] - running) > 1e-2f) {
                std::printf("row %d, column %d: %f, expected %f\n", r, c, out[r * cols + c], running);
                return 1;
            }
        }
    }
    std::printf("running sums of %d rows\n", rows);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
