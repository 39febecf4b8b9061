// RMS norm: a block for each row, its threads walk over the row together.
// Pitfall: thread 0 adds the partial sums of 256 threads, and every element is divided and takes a square root again.
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

constexpr int THREADS = 256;

__global__ void rms_norm_block(const float* x, const float* weight, float* out, int rows, int dim, float eps) {
    __shared__ float squares[THREADS];
    __shared__ float total;

    const int row = blockIdx.x;
    if (row >= rows) return;

    float mine = 0.0f;
    for (int d = threadIdx.x; d < dim; d += THREADS) {
        mine += x[row * dim + d] * x[row * dim + d];
    }
    squares[threadIdx.x] = mine;
    __syncthreads();

    if (threadIdx.x == 0) {
        total = 0.0f;
        for (int k = 0; k < THREADS; k++) total += squares[k];
    }
    __syncthreads();

    for (int d = threadIdx.x; d < dim; d += THREADS) {
        out[row * dim + d] = x[row * dim + d] / sqrtf(total / dim + eps) * weight[d];
    }
}

int main() {
    const int rows = 2048, dim = 4096;
    std::vector<float> x(rows * dim), out(rows * dim), weight(dim);
    for (int i = 0; i < rows * dim; i++) x[i] = 0.05f * static_cast<float>(i % 61) - 1.5f;
    for (int d = 0; d < dim; d++) weight[d] = 0.5f + 0.001f * static_cast<float>(d % 500);

    float *d_x, *d_weight, *d_out;
    CHECK(cudaMalloc(&d_x, rows * dim * sizeof(float)));
    CHECK(cudaMalloc(&d_weight, dim * sizeof(float)));
    CHECK(cudaMalloc(&d_out, rows * dim * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), rows * dim * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_weight, weight.data(), dim * sizeof(float), cudaMemcpyHostToDevice));

    rms_norm_block<<<rows, THREADS>>>(d_x, d_weight, d_out, rows, dim, 1e-6f);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, rows * dim * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        double squares = 0.0;
        for (int d = 0; d < dim; d++) squares += static_cast<double>(x[row * dim + d]) * x[row * dim + d];
        double scale = 1.0 / std::sqrt(squares / dim + 1e-6);
        for (int d = 0; d < dim; d++) {
            double expected = x[row * dim + d] * scale * weight[d];
            if (std::fabs(out[row * dim + d] - expected) > 1e-4) {
                std::printf("row %d, element %d: %f, expected %f\n", row, d, out[row * dim + d], expected);
                return 1;
            }
        }
    }
    std::printf("rms norm of %d rows\n", rows);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_weight));
    CHECK(cudaFree(d_out));
    return 0;
}
