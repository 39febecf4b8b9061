// Softmax of each row of a matrix, one thread for each row.
// Pitfall: neighbouring lanes walk over neighbouring rows, so all three passes load and store 32 sectors a request.
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

__global__ void softmax_rows(const float* logits, float* probs, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;

    float top = logits[row * cols];
    for (int j = 1; j < cols; j++) {
        top = fmaxf(top, logits[row * cols + j]);
    }
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) {
        sum += expf(logits[row * cols + j] - top);
    }
    for (int j = 0; j < cols; j++) {
        probs[row * cols + j] = expf(logits[row * cols + j] - top) / sum;
    }
}

int main() {
    const int rows = 8192, cols = 512;
    const size_t bytes = sizeof(float) * rows * cols;
    std::vector<float> logits(rows * cols), probs(rows * cols);
    for (int i = 0; i < rows * cols; i++) logits[i] = 0.1f * static_cast<float>(i % 97);

    float *d_logits, *d_probs;
    CHECK(cudaMalloc(&d_logits, bytes));
    CHECK(cudaMalloc(&d_probs, bytes));
    CHECK(cudaMemcpy(d_logits, logits.data(), bytes, cudaMemcpyHostToDevice));

    softmax_rows<<<(rows + 127) / 128, 128>>>(d_logits, d_probs, rows, cols);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(probs.data(), d_probs, bytes, cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        double sum = 0.0;
        for (int j = 0; j < cols; j++) sum += std::exp(static_cast<double>(logits[row * cols + j]));
        for (int j = 0; j < cols; j++) {
            double expected = std::exp(static_cast<double>(logits[row * cols + j])) / sum;
            if (std::fabs(probs[row * cols + j] - expected) > 1e-6) {
                std::printf("row %d, column %d: %g, expected %g\n", row, j, probs[row * cols + j], expected);
                return 1;
            }
        }
    }
    std::printf("softmax of %d rows\n", rows);
    CHECK(cudaFree(d_logits));
    CHECK(cudaFree(d_probs));
    return 0;
}
