// Doubles the width and height of a batch of images, one thread for each output pixel.
// Pitfall: four divisions and modulos by run-time values take each flat index apart.
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

__global__ void upsample_nearest(const float* __restrict__ in, float* __restrict__ out, int planes, int height,
                                 int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * 4 * height * width) return;
    int x = i % (2 * width);
    int y = i / (2 * width) % (2 * height);
    int plane = i / (4 * width * height);
    out[i] = in[(plane * height + y / 2) * width + x / 2];
}

int main() {
    const int planes = 64, height = 128, width = 128;
    std::vector<float> in(planes * height * width), out(4 * planes * height * width);
    for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<float>(i % 4001);

    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, in.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));

    const int total = 4 * planes * height * width;
    upsample_nearest<<<(total + 255) / 256, 256>>>(d_in, d_out, planes, height, width);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int p = 0; p < planes; p++) {
        for (int y = 0; y < 2 * height; y++) {
            for (int x = 0; x < 2 * width; x++) {
                if (out[(p * 2 * height + y) * 2 * width + x] != in[(p * height + y / 2) * width + x / 2]) {
                    std::printf("plane %d, pixel (%d, %d) is wrong\n", p, x, y);
                    return 1;
                }
            }
        }
    }
    std::printf("upsampled %d planes\n", planes);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
