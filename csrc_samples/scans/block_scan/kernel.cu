// The running sum within each block of 512 elements, by doubling distances in shared memory.
// Pitfall: one buffer is read and written, so every step takes two barriers; two buffers in turns would need one.
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

#define BLOCK 512

__global__ void block_scan(const float* data, float* prefix, int n) {
    __shared__ float buffer[BLOCK];
    int tid = threadIdx.x;
    int gid = blockIdx.x * BLOCK + tid;

    buffer[tid] = (gid < n) ? data[gid] : 0.0f;
    __syncthreads();

    for (int offset = 1; offset < BLOCK; offset <<= 1) {
        float left = 0.0f;
        if (tid >= offset) left = buffer[tid - offset];
        __syncthreads();
        buffer[tid] += left;
        __syncthreads();
    }

    if (gid < n) prefix[gid] = buffer[tid];
}

int main() {
    const int n = 1 << 22;
    std::vector<float> data(n), prefix(n);
    for (int i = 0; i < n; i++) data[i] = static_cast<float>(i % 11) - 5.0f;

    float *d_data, *d_prefix;
    CHECK(cudaMalloc(&d_data, n * sizeof(float)));
    CHECK(cudaMalloc(&d_prefix, n * sizeof(float)));
    CHECK(cudaMemcpy(d_data, data.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    block_scan<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(d_data, d_prefix, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(prefix.data(), d_prefix, n * sizeof(float), cudaMemcpyDeviceToHost));
    float running = 0.0f;
    for (int i = 0; i < n; i++) {
        running = i % BLOCK == 0 ? data[i] : running + data[i];
        if (std::fabs(prefix[i] - running) > 1e-2f) {
            std::printf("element %d: %f, expected %f\n", i, prefix[i], running);
            return 1;
        }
    }
    std::printf("running sums of %d elements in blocks of %d\n", n, BLOCK);
    CHECK(cudaFree(d_data));
    CHECK(cudaFree(d_prefix));
    return 0;
}
