// Applies the logistic function to n elements.
// Pitfall: 1.0 is a double, so the sum and the quotient are computed in double precision and rounded back.
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

__global__ void sigmoid_double(const float* input, float* output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        output[i] = 1.0 / (1.0 + expf(-input[i]));
    }
}

int main() {
    const int n = 1 << 23;
    std::vector<float> input(n), output(n);
    for (int i = 0; i < n; i++) input[i] = 0.01f * static_cast<float>(i % 1601) - 8.0f;

    float *d_input, *d_output;
    CHECK(cudaMalloc(&d_input, n * sizeof(float)));
    CHECK(cudaMalloc(&d_output, n * sizeof(float)));
    CHECK(cudaMemcpy(d_input, input.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    int threads = 256;
    int blocks = (n + threads - 1) / threads;
    sigmoid_double<<<blocks, threads>>>(d_input, d_output, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(output.data(), d_output, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float expected = 1.0f / (1.0f + std::exp(-input[i]));
        if (std::fabs(output[i] - expected) > 1e-5f) {
            std::printf("element %d: %f, expected %f\n", i, output[i], expected);
            return 1;
        }
    }
    std::printf("sigmoid of %d elements\n", n);
    CHECK(cudaFree(d_input));
    CHECK(cudaFree(d_output));
    return 0;
}
