// Moves the channels of images from outermost to innermost (NCHW to NHWC), one thread for each element.
// Pitfall: the reads are contiguous, so the stores of a warp lie as far apart as there are channels.
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

__global__ void nchw_to_nhwc(const float* nchw, float* nhwc, int images, int channels, int pixels) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    int channel = blockIdx.y;
    int image = blockIdx.z;
    if (pixel < pixels && channel < channels && image < images) {
        nhwc[(image * pixels + pixel) * channels + channel] = nchw[(image * channels + channel) * pixels + pixel];
    }
}

int main() {
    const int images = 16, channels = 64, pixels = 64 * 64;
    const int n = images * channels * pixels;
    std::vector<float> nchw(n), nhwc(n);
    for (int i = 0; i < n; i++) nchw[i] = static_cast<float>(i % 16381);

    float *d_nchw, *d_nhwc;
    CHECK(cudaMalloc(&d_nchw, n * sizeof(float)));
    CHECK(cudaMalloc(&d_nhwc, n * sizeof(float)));
    CHECK(cudaMemcpy(d_nchw, nchw.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    dim3 grid((pixels + 255) / 256, channels, images);
    nchw_to_nhwc<<<grid, 256>>>(d_nchw, d_nhwc, images, channels, pixels);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(nhwc.data(), d_nhwc, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int image = 0; image < images; image++) {
        for (int c = 0; c < channels; c++) {
            for (int p = 0; p < pixels; p++) {
                if (nhwc[(image * pixels + p) * channels + c] != nchw[(image * channels + c) * pixels + p]) {
                    std::printf("image %d, channel %d, pixel %d is wrong\n", image, c, p);
                    return 1;
                }
            }
        }
    }
    std::printf("moved %d elements\n", n);
    CHECK(cudaFree(d_nchw));
    CHECK(cudaFree(d_nhwc));
    return 0;
}
