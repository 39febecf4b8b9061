// The output of attention: each query's probabilities times the values of all keys, for several heads.
// Pitfall: each probability is loaded by all threads of its row, and the values again for each query.
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

__global__ void attention_output(const float* probabilities, const float* values, float* output, int heads, int length,
                                 int dim) {
    int d = threadIdx.x + blockIdx.x * blockDim.x;
    int query = blockIdx.y;
    int head = blockIdx.z;
    if (d >= dim || query >= length || head >= heads) return;

    float sum = 0.0f;
    for (int key = 0; key < length; key++) {
        sum += probabilities[(head * length + query) * length + key] * values[(head * length + key) * dim + d];
    }
    output[(head * length + query) * dim + d] = sum;
}

int main() {
    const int heads = 16, length = 1024, dim = 64;
    const int n = heads * length * dim;
    std::vector<float> probabilities(heads * length * length), values(n), output(n);
    for (size_t i = 0; i < probabilities.size(); i++) probabilities[i] = static_cast<float>(i % 5) / 2048.0f;
    for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(i % 13) - 6.0f;

    float *d_probabilities, *d_values, *d_output;
    CHECK(cudaMalloc(&d_probabilities, probabilities.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_values, values.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_output, output.size() * sizeof(float)));
    const size_t bytes = probabilities.size() * sizeof(float);
    CHECK(cudaMemcpy(d_probabilities, probabilities.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_values, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 grid((dim + 63) / 64, length, heads);
    attention_output<<<grid, 64>>>(d_probabilities, d_values, d_output, heads, length, dim);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(output.data(), d_output, output.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < heads * length; row += 59) {
        const int head = row / length;
        for (int d = 0; d < dim; d++) {
            double expected = 0.0;
            for (int key = 0; key < length; key++) {
                expected += probabilities[row * length + key] * values[(head * length + key) * dim + d];
            }
            if (std::fabs(output[row * dim + d] - expected) > 1e-3) {
                std::printf("row %d, element %d: %f, expected %f\n", row, d, output[row * dim + d], expected);
                return 1;
            }
        }
    }
    std::printf("attention of %d heads\n", heads);
    CHECK(cudaFree(d_probabilities));
    CHECK(cudaFree(d_values));
    CHECK(cudaFree(d_output));
    return 0;
}
