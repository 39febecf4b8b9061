// The Sobel gradient's magnitude of an image; threadIdx.x runs down the image.
// Pitfall: lanes of a warp are neighbours in y, so each of the eight loads and the store touches a sector for each row.
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

__global__ void sobel(const float* gray, float* edges, int w, int h) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        edges[y * w + x] = 0.0f;
        return;
    }
    const float* p = gray + y * w + x;
    float gx = p[1 - w] + 2 * p[1] + p[1 + w] - p[-1 - w] - 2 * p[-1] - p[-1 + w];
    float gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
    edges[y * w + x] = sqrtf(gx * gx + gy * gy);
}

int main() {
    const int w = 2560, h = 1440;
    std::vector<float> gray(w * h), edges(w * h);
    for (int i = 0; i < w * h; i++) gray[i] = static_cast<float>(3 * (i % w % 256) + 4 * (i / w % 128));

    float *d_gray, *d_edges;
    CHECK(cudaMalloc(&d_gray, gray.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_edges, edges.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_gray, gray.data(), gray.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(32, 8);
    dim3 grid((h + 31) / 32, (w + 7) / 8);
    sobel<<<grid, block>>>(d_gray, d_edges, w, h);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(edges.data(), d_edges, edges.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            float expected = 0.0f;
            if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
                float gx = 0.0f, gy = 0.0f;
                for (int k = -1; k <= 1; k++) {
                    float weight = k == 0 ? 2.0f : 1.0f;
                    gx += weight * (gray[(y + k) * w + x + 1] - gray[(y + k) * w + x - 1]);
                    gy += weight * (gray[(y + 1) * w + x + k] - gray[(y - 1) * w + x + k]);
                }
                expected = std::sqrt(gx * gx + gy * gy);
            }
            if (std::fabs(edges[y * w + x] - expected) > 1e-2f) {
                std::printf("pixel (%d, %d): %f, expected %f\n", x, y, edges[y * w + x], expected);
                return 1;
            }
        }
    }
    std::printf("edges of %d x %d pixels\n", w, h);
    CHECK(cudaFree(d_gray));
    CHECK(cudaFree(d_edges));
    return 0;
}
