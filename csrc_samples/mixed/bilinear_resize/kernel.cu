// Resizes an image with bilinear interpolation, in blocks of 8 x 32 whose x walks over rows of the output.
// Pitfall: threadIdx.x is the row, so the lanes of a warp store a row apart and read from different rows.
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

__global__ void bilinear_resize(const float* src, float* dst, int src_w, int src_h, int dst_w, int dst_h) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= dst_h || col >= dst_w) return;

    float fy = static_cast<float>(row) * (src_h - 1) / dst_h;
    float fx = static_cast<float>(col) * (src_w - 1) / dst_w;
    int y0 = static_cast<int>(fy), x0 = static_cast<int>(fx);
    int y1 = min(y0 + 1, src_h - 1), x1 = min(x0 + 1, src_w - 1);
    float wy = fy - y0, wx = fx - x0;

    float top = (1.0f - wx) * src[y0 * src_w + x0] + wx * src[y0 * src_w + x1];
    float bottom = (1.0f - wx) * src[y1 * src_w + x0] + wx * src[y1 * src_w + x1];
    dst[row * dst_w + col] = (1.0f - wy) * top + wy * bottom;
}

int main() {
    const int src_w = 1024, src_h = 768, dst_w = 2048, dst_h = 1536;
    std::vector<float> src(src_w * src_h), dst(dst_w * dst_h);
    for (int y = 0; y < src_h; y++) {
        for (int x = 0; x < src_w; x++) src[y * src_w + x] = 0.25f * x + 0.5f * y;
    }

    float *d_src, *d_dst;
    CHECK(cudaMalloc(&d_src, src.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_dst, dst.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_src, src.data(), src.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(8, 32);
    dim3 grid((dst_h + 7) / 8, (dst_w + 31) / 32);
    bilinear_resize<<<grid, block>>>(d_src, d_dst, src_w, src_h, dst_w, dst_h);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(dst.data(), d_dst, dst.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < dst_h; y++) {
        for (int x = 0; x < dst_w; x++) {
            // The image is linear, so what is interpolated is what the formula gives.
            double expected = 0.25 * x * (src_w - 1) / dst_w + 0.5 * y * (src_h - 1) / dst_h;
            if (std::fabs(dst[y * dst_w + x] - expected) > 1e-2) {
                std::printf("pixel (%d, %d): %f, expected %f\n", x, y, dst[y * dst_w + x], expected);
                return 1;
            }
        }
    }
    std::printf("resized to %d x %d pixels\n", dst_w, dst_h);
    CHECK(cudaFree(d_src));
    CHECK(cudaFree(d_dst));
    return 0;
}
