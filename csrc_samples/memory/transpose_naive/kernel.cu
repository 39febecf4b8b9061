// Transposes a matrix that is stored by rows, one thread for each element, 2-D blocks.
// Pitfall: the reads run along rows, so the stores run along columns: each lane of a warp stores into another row.
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

__global__ void transpose_naive(const float* __restrict__ src, float* __restrict__ dst, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) {
        dst[c * rows + r] = src[r * cols + c];
    }
}

int main() {
    const int rows = 2048, cols = 4096;
    const size_t bytes = sizeof(float) * rows * cols;
    std::vector<float> src(rows * cols), dst(rows * cols);
    for (int i = 0; i < rows * cols; i++) src[i] = static_cast<float>(i % 4093);

    float *d_src, *d_dst;
    CHECK(cudaMalloc(&d_src, bytes));
    CHECK(cudaMalloc(&d_dst, bytes));
    CHECK(cudaMemcpy(d_src, src.data(), bytes, cudaMemcpyHostToDevice));

    dim3 threads(32, 8);
    dim3 blocks((cols + threads.x - 1) / threads.x, (rows + threads.y - 1) / threads.y);
    transpose_naive<<<blocks, threads>>>(d_src, d_dst, rows, cols);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(dst.data(), d_dst, bytes, cudaMemcpyDeviceToHost));

    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            if (dst[c * rows + r] != src[r * cols + c]) {
                std::printf("wrong at row %d, column %d\n", r, c);
                return 1;
            }
        }
    }
    std::printf("transposed %d x %d\n", rows, cols);
    CHECK(cudaFree(d_src));
    CHECK(cudaFree(d_dst));
    return 0;
}
