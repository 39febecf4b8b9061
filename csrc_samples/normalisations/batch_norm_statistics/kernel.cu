// Sum and sum of squares of each channel over images and pixels (NCHW), one block for each channel.
// Pitfall: the index is taken apart with a division and a modulo by run-time values for every element.
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

__global__ void batch_norm_statistics(const float* x, float* total, float* total_squares, int images, int channels,
                                      int pixels) {
    __shared__ float sums[256];
    __shared__ float squares[256];

    int c = blockIdx.x;
    int tid = threadIdx.x;
    int count = images * pixels;
    float sum = 0.0f, square = 0.0f;
    for (int i = tid; i < count; i += blockDim.x) {
        int image = i / pixels;
        int pixel = i % pixels;
        float v = x[(image * channels + c) * pixels + pixel];
        sum += v;
        square += v * v;
    }
    sums[tid] = sum;
    squares[tid] = square;
    __syncthreads();

    for (int half = 128; half > 0; half /= 2) {
        if (tid < half) {
            sums[tid] += sums[tid + half];
            squares[tid] += squares[tid + half];
        }
        __syncthreads();
    }
    if (tid == 0) {
        total[c] = sums[0];
        total_squares[c] = squares[0];
    }
}

int main() {
    const int images = 32, channels = 256, pixels = 784;
    const int n = images * channels * pixels;
    std::vector<float> x(n), total(channels), total_squares(channels);
    for (int i = 0; i < n; i++) x[i] = 0.5f * static_cast<float>(i % 13) - 3.0f;

    float *d_x, *d_total, *d_squares;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_total, channels * sizeof(float)));
    CHECK(cudaMalloc(&d_squares, channels * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    batch_norm_statistics<<<channels, 256>>>(d_x, d_total, d_squares, images, channels, pixels);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(total.data(), d_total, channels * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(total_squares.data(), d_squares, channels * sizeof(float), cudaMemcpyDeviceToHost));
    for (int c = 0; c < channels; c++) {
        double sum = 0.0, square = 0.0;
        for (int image = 0; image < images; image++) {
            for (int p = 0; p < pixels; p++) {
                double v = x[(image * channels + c) * pixels + p];
                sum += v;
                square += v * v;
            }
        }
        if (std::fabs(total[c] - sum) > 1e-1 || std::fabs(total_squares[c] - square) > 1e-5 * square) {
            std::printf("channel %d: %f, %f, expected %f, %f\n", c, total[c], total_squares[c], sum, square);
            return 1;
        }
    }
    std::printf("statistics of %d channels\n", channels);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_total));
    CHECK(cudaFree(d_squares));
    return 0;
}
