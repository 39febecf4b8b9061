// C = A * B^T with both matrices stored by rows, as in a linear layer: B holds a row of weights for each output.
// Pitfall: neighbouring lanes read neighbouring rows of B, so the loads of B touch a sector for each column.
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

__global__ void linear_layer(const float* input, const float* weights, const float* bias, float* output, int batch,
                             int inputs, int outputs) {
    const int o = blockIdx.x * blockDim.x + threadIdx.x;
    const int b = blockIdx.y * blockDim.y + threadIdx.y;
    if (b >= batch || o >= outputs) return;

    float sum = bias[o];
    for (int i = 0; i < inputs; i++) sum += input[b * inputs + i] * weights[o * inputs + i];
    output[b * outputs + o] = sum;
}

int main() {
    const int batch = 1024, inputs = 256, outputs = 1024;
    std::vector<float> input(batch * inputs), weights(outputs * inputs), bias(outputs), output(batch * outputs);
    for (int i = 0; i < batch * inputs; i++) input[i] = static_cast<float>(i % 5) - 2.0f;
    for (int i = 0; i < outputs * inputs; i++) weights[i] = 0.25f * static_cast<float>(i % 7);
    for (int i = 0; i < outputs; i++) bias[i] = static_cast<float>(i % 3);

    float *d_input, *d_weights, *d_bias, *d_output;
    CHECK(cudaMalloc(&d_input, input.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_weights, weights.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_bias, bias.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_output, output.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_input, input.data(), input.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_weights, weights.data(), weights.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_bias, bias.data(), bias.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(32, 4);
    dim3 grid((outputs + block.x - 1) / block.x, (batch + block.y - 1) / block.y);
    linear_layer<<<grid, block>>>(d_input, d_weights, d_bias, d_output, batch, inputs, outputs);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(output.data(), d_output, output.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int b = 0; b < batch; b += 13) {
        for (int o = 0; o < outputs; o++) {
            float expected = bias[o];
            for (int i = 0; i < inputs; i++) expected += input[b * inputs + i] * weights[o * inputs + i];
            if (std::fabs(output[b * outputs + o] - expected) > 1e-2f) {
                std::printf("sample %d, output %d: %f, expected %f\n", b, o, output[b * outputs + o], expected);
                return 1;
            }
        }
    }
    std::printf("linear layer of %d samples\n", batch);
    CHECK(cudaFree(d_input));
    CHECK(cudaFree(d_weights));
    CHECK(cudaFree(d_bias));
    CHECK(cudaFree(d_output));
    return 0;
}
