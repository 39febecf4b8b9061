// Adds a bias to each channel of a batch of images (NCHW) and clips below at zero.
// Pitfall: each thread divides and takes a modulo by run-time values to find its channel.
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

__global__ void channel_bias(float* x, const float* bias, int images, int channels, int pixels) {
    int total = images * channels * pixels;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int channel = (i / pixels) % channels;
        float v = x[i] + bias[channel];
        x[i] = v > 0.0f ? v : 0.0f;
    }
}

int main() {
    const int images = 16, channels = 128, pixels = 56 * 56;
    const int total = images * channels * pixels;
    std::vector<float> x(total), biased(total), bias(channels);
    for (int i = 0; i < total; i++) x[i] = static_cast<float>(i % 21) - 10.0f;
    for (int c = 0; c < channels; c++) bias[c] = 0.5f * static_cast<float>(c % 5);

    float *d_x, *d_bias;
    CHECK(cudaMalloc(&d_x, total * sizeof(float)));
    CHECK(cudaMalloc(&d_bias, channels * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), total * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_bias, bias.data(), channels * sizeof(float), cudaMemcpyHostToDevice));

    channel_bias<<<1056, 256>>>(d_x, d_bias, images, channels, pixels);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(biased.data(), d_x, total * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < total; i++) {
        float expected = x[i] + bias[(i / pixels) % channels];
        if (biased[i] != (expected > 0.0f ? expected : 0.0f)) {
            std::printf("element %d: %f, expected %f\n", i, biased[i], expected);
            return 1;
        }
    }
    std::printf("added a bias to %d elements\n", total);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_bias));
    return 0;
}
