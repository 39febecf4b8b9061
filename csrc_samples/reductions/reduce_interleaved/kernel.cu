// Sums each block's 256 elements in shared memory; the host adds the partial sums.
// Pitfall: the threads that still work are 2, 4, 8, ... apart, so no warp is done before the last steps of the loop.
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

constexpr int BLOCK = 256;

__global__ void block_sums(const float* in, float* sums, int n) {
    __shared__ float partial[BLOCK];

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();

    for (unsigned int stride = 1; stride < blockDim.x; stride *= 2) {
        if (threadIdx.x % (2 * stride) == 0) {
            partial[threadIdx.x] += partial[threadIdx.x + stride];
        }
        __syncthreads();
    }

    if (threadIdx.x == 0) {
        sums[blockIdx.x] = partial[0];
    }
}

int main() {
    const int n = 1 << 20;
    const int blocks = (n + BLOCK - 1) / BLOCK;
    std::vector<float> in(n), sums(blocks);
    double expected = 0.0;
    for (int i = 0; i < n; i++) {
        in[i] = static_cast<float>(i % 7);
        expected += in[i];
    }

    float *d_in, *d_sums;
    CHECK(cudaMalloc(&d_in, n * sizeof(float)));
    CHECK(cudaMalloc(&d_sums, blocks * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    block_sums<<<blocks, BLOCK>>>(d_in, d_sums, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(sums.data(), d_sums, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    double total = 0.0;
    for (float sum : sums) total += sum;
    if (std::fabs(total - expected) > 1e-6 * expected) {
        std::printf("sum %f, expected %f\n", total, expected);
        return 1;
    }
    std::printf("sum of %d elements: %.0f\n", n, total);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_sums));
    return 0;
}
