// Softmax of each row of a matrix, a block of 128 threads for each row.
// Pitfall: the three passes load the row from global memory again, and exp(double) is taken twice for each element.
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

constexpr int THREADS = 128;

__global__ void softmax_block(const float* x, float* p, int rows, int cols) {
    __shared__ float shared[THREADS];
    const int t = threadIdx.x;
    if (blockIdx.x >= rows) return;
    const float* row = x + blockIdx.x * cols;
    float* out = p + blockIdx.x * cols;

    float top = row[0];
    for (int c = t; c < cols; c += THREADS) top = fmaxf(top, row[c]);
    shared[t] = top;
    __syncthreads();
    for (int s = THREADS / 2; s > 0; s >>= 1) {
        if (t < s) shared[t] = fmaxf(shared[t], shared[t + s]);
        __syncthreads();
    }
    top = shared[0];
    __syncthreads();

    float sum = 0.0f;
    for (int c = t; c < cols; c += THREADS) sum += exp((double)row[c] - top);
    shared[t] = sum;
    __syncthreads();
    for (int s = THREADS / 2; s > 0; s >>= 1) {
        if (t < s) shared[t] += shared[t + s];
        __syncthreads();
    }
    sum = shared[0];

    for (int c = t; c < cols; c += THREADS) out[c] = exp((double)row[c] - top) / sum;
}

int main() {
    const int rows = 4096, cols = 1024;
    std::vector<float> x(rows * cols), p(rows * cols);
    for (int i = 0; i < rows * cols; i++) x[i] = 0.05f * static_cast<float>(i % 113);

    float *d_x, *d_p;
    CHECK(cudaMalloc(&d_x, x.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_p, p.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));

    softmax_block<<<rows, THREADS>>>(d_x, d_p, rows, cols);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(p.data(), d_p, p.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int c = 0; c < cols; c++) sum += std::exp(static_cast<double>(x[r * cols + c]));
        for (int c = 0; c < cols; c++) {
            double expected = std::exp(static_cast<double>(x[r * cols + c])) / sum;
            if (std::fabs(p[r * cols + c] - expected) > 1e-6) {
                std::printf("row %d, column %d: %g, expected %g\n", r, c, p[r * cols + c], expected);
                return 1;
            }
        }
    }
    std::printf("softmax of %d rows\n", rows);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_p));
    return 0;
}
