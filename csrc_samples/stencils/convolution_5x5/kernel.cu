// Convolves an image with a 5 x 5 filter; outside the image stands zero.
// Pitfall: 25 loads of pixels and 25 of filter weights from global memory for each output, each with its own test.
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

#define RADIUS 2
#define SIDE (2 * RADIUS + 1)

__global__ void convolution(const float* image, const float* filter, float* result, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    float sum = 0;
    for (int dy = -RADIUS; dy <= RADIUS; dy++) {
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
            int sx = x + dx;
            int sy = y + dy;
            if (sx >= 0 && sx < width && sy >= 0 && sy < height) {
                sum += image[sy * width + sx] * filter[(dy + RADIUS) * SIDE + dx + RADIUS];
            }
        }
    }
    result[y * width + x] = sum;
}

int main() {
    const int width = 1920, height = 1080;
    std::vector<float> image(width * height), filter(SIDE * SIDE), result(width * height);
    for (int i = 0; i < width * height; i++) image[i] = static_cast<float>(i % 256);
    for (int i = 0; i < SIDE * SIDE; i++) filter[i] = 0.04f * static_cast<float>(i % 3);

    float *d_image, *d_filter, *d_result;
    CHECK(cudaMalloc(&d_image, image.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_filter, filter.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_result, result.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_image, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_filter, filter.data(), filter.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((width + 15) / 16, (height + 15) / 16);
    convolution<<<grid, block>>>(d_image, d_filter, d_result, width, height);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(result.data(), d_result, result.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            double sum = 0.0;
            for (int k = 0; k < SIDE * SIDE; k++) {
                int sx = x + k % SIDE - RADIUS, sy = y + k / SIDE - RADIUS;
                if (sx >= 0 && sx < width && sy >= 0 && sy < height) sum += image[sy * width + sx] * filter[k];
            }
            if (std::fabs(result[y * width + x] - sum) > 1e-2) {
                std::printf("pixel (%d, %d): %f, expected %f\n", x, y, result[y * width + x], sum);
                return 1;
            }
        }
    }
    std::printf("convolved %d x %d pixels\n", width, height);
    CHECK(cudaFree(d_image));
    CHECK(cudaFree(d_filter));
    CHECK(cudaFree(d_result));
    return 0;
}
