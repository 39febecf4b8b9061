// Splits an image of interleaved red, green, blue floats into three planes.
// Pitfall: a warp's loads of one colour lie 12 bytes apart, so each of the three requests moves three times its data.
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

__global__ void split_rgb(const float* rgb, float* red, float* green, float* blue, int pixels) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p < pixels) {
        red[p] = rgb[3 * p + 0];
        green[p] = rgb[3 * p + 1];
        blue[p] = rgb[3 * p + 2];
    }
}

int main() {
    const int pixels = 3840 * 2160;
    std::vector<float> rgb(3 * pixels), red(pixels), green(pixels), blue(pixels);
    for (int i = 0; i < 3 * pixels; i++) rgb[i] = static_cast<float>(i % 251);

    float *d_rgb, *d_red, *d_green, *d_blue;
    CHECK(cudaMalloc(&d_rgb, 3 * pixels * sizeof(float)));
    CHECK(cudaMalloc(&d_red, pixels * sizeof(float)));
    CHECK(cudaMalloc(&d_green, pixels * sizeof(float)));
    CHECK(cudaMalloc(&d_blue, pixels * sizeof(float)));
    CHECK(cudaMemcpy(d_rgb, rgb.data(), 3 * pixels * sizeof(float), cudaMemcpyHostToDevice));

    split_rgb<<<(pixels + 511) / 512, 512>>>(d_rgb, d_red, d_green, d_blue, pixels);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(red.data(), d_red, pixels * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(green.data(), d_green, pixels * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(blue.data(), d_blue, pixels * sizeof(float), cudaMemcpyDeviceToHost));
    for (int p = 0; p < pixels; p++) {
        if (red[p] != rgb[3 * p] || green[p] != rgb[3 * p + 1] || blue[p] != rgb[3 * p + 2]) {
            std::printf("pixel %d is wrong\n", p);
            return 1;
        }
    }
    std::printf("split %d pixels\n", pixels);
    CHECK(cudaFree(d_rgb));
    CHECK(cudaFree(d_red));
    CHECK(cudaFree(d_green));
    CHECK(cudaFree(d_blue));
    return 0;
}
