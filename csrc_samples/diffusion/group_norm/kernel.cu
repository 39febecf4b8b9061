// Group norm of images (NCHW), a block for each group of each image.
// Pitfall: dividing by the run-time number of pixels for each element, and 1.0 makes the scale a double.
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

__global__ void group_norm(const float* x, const float* scale, const float* shift, float* y, int images, int groups,
                           int per_group, int pixels) {
    __shared__ float partial[256];
    if (blockIdx.x >= images * groups) return;
    int size = per_group * pixels;
    int start = blockIdx.x * size;
    int first_channel = (blockIdx.x % groups) * per_group;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < size; i += 256) sum += x[start + i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        int at = 2 * s * threadIdx.x;
        if (at < 256) partial[at] += partial[at + s];
        __syncthreads();
    }
    float mean = partial[0] / size;
    __syncthreads();

    float squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += 256) {
        float d = x[start + i] - mean;
        squares += d * d;
    }
    partial[threadIdx.x] = squares;
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        int at = 2 * s * threadIdx.x;
        if (at < 256) partial[at] += partial[at + s];
        __syncthreads();
    }
    float inverse = 1.0 / sqrtf(partial[0] / size + 1e-5f);

    for (int i = threadIdx.x; i < size; i += 256) {
        int channel = first_channel + i / pixels;
        y[start + i] = (x[start + i] - mean) * inverse * scale[channel] + shift[channel];
    }
}

int main() {
    const int images = 16, groups = 32, per_group = 8, pixels = 32 * 32;
    const int channels = groups * per_group, size = per_group * pixels;
    const int n = images * groups * size;
    std::vector<float> x(n), y(n), scale(channels), shift(channels);
    for (int i = 0; i < n; i++) x[i] = 0.1f * static_cast<float>(i % 79) - 3.0f;
    for (int c = 0; c < channels; c++) {
        scale[c] = 1.0f + 0.1f * static_cast<float>(c % 5);
        shift[c] = 0.5f * static_cast<float>(c % 3);
    }

    float *d_x, *d_y, *d_scale, *d_shift;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CHECK(cudaMalloc(&d_scale, channels * sizeof(float)));
    CHECK(cudaMalloc(&d_shift, channels * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_scale, scale.data(), channels * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_shift, shift.data(), channels * sizeof(float), cudaMemcpyHostToDevice));

    group_norm<<<images * groups, 256>>>(d_x, d_scale, d_shift, d_y, images, groups, per_group, pixels);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int g = 0; g < images * groups; g++) {
        double mean = 0.0, variance = 0.0;
        for (int i = g * size; i < (g + 1) * size; i++) mean += x[i] / static_cast<double>(size);
        for (int i = g * size; i < (g + 1) * size; i++) variance += (x[i] - mean) * (x[i] - mean) / size;
        for (int i = g * size; i < (g + 1) * size; i++) {
            int c = i / pixels % channels;
            double expected = (x[i] - mean) / std::sqrt(variance + 1e-5) * scale[c] + shift[c];
            if (std::fabs(y[i] - expected) > 1e-3) {
                std::printf("element %d: %f, expected %f\n", i, y[i], expected);
                return 1;
            }
        }
    }
    std::printf("group norm of %d elements\n", n);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    CHECK(cudaFree(d_scale));
    CHECK(cudaFree(d_shift));
    return 0;
}
