// A sample to try warpwright on: nothing here is saved unless you do it.
//
// The kernel transposes a matrix through a tile in shared memory. It reads the tile by columns, whose elements lie 32
// floats apart: all lanes of a warp want words of one bank. Hover over the underlined access, take its quick fix, or
// let Optimize above the kernel find what else helps.
#include <cstdio>

constexpr int TILE = 32;
constexpr int ROWS = 8;

__global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ float tile[TILE][TILE];

    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        if (x < width && y + j < height) {
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
        }
    }
    __syncthreads();

    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        if (x < height && y + j < width) {
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}

int main() {
    const int width = 4096, height = 4096;
    float *in, *out;
    cudaMalloc(&in, sizeof(float) * width * height);
    cudaMalloc(&out, sizeof(float) * width * height);
    cudaMemset(in, 0, sizeof(float) * width * height);

    dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    transpose<<<grid, dim3(TILE, ROWS)>>>(in, out, width, height);

    cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
