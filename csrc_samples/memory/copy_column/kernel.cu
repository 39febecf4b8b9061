// Copies a matrix that is stored by rows.
// Pitfall: threadIdx.x walks down a column, so the 32 lanes of a warp touch 32 rows: one 32-byte sector for each float.
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

__global__ void copy_matrix(const float* in, float* out, int width, int height) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) {
        out[row * width + column] = in[row * width + column];
    }
}

int main() {
    const int width = 2048, height = 2048;
    const size_t bytes = sizeof(float) * width * height;
    std::vector<float> in(width * height), out(width * height);
    for (int i = 0; i < width * height; i++) in[i] = static_cast<float>(i % 1021);

    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));

    dim3 block(32, 8);
    dim3 grid((height + block.x - 1) / block.x, (width + block.y - 1) / block.y);
    copy_matrix<<<grid, block>>>(d_in, d_out, width, height);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    if (out != in) {
        std::printf("the copy differs\n");
        return 1;
    }
    std::printf("copied %d x %d\n", width, height);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
