// Counts how many elements lie above a limit.
// Pitfall: all warps of the grid add to one counter in global memory, though the compiler adds up each warp's lanes.
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

__global__ void count_above(const float* data, int* count, float limit, int n) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n && data[index] > limit) {
        atomicAdd(count, 1);
    }
}

int main() {
    const int n = 1 << 23;
    const float limit = 0.5f;
    std::vector<float> data(n);
    int expected = 0;
    for (int i = 0; i < n; i++) {
        data[i] = static_cast<float>(i % 10) / 8.0f;
        if (data[i] > limit) expected++;
    }

    float* d_data;
    int* d_count;
    CHECK(cudaMalloc(&d_data, n * sizeof(float)));
    CHECK(cudaMalloc(&d_count, sizeof(int)));
    CHECK(cudaMemcpy(d_data, data.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_count, 0, sizeof(int)));

    count_above<<<(n + 255) / 256, 256>>>(d_data, d_count, limit, n);
    CHECK(cudaGetLastError());

    int count = 0;
    CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
    if (count != expected) {
        std::printf("%d elements, expected %d\n", count, expected);
        return 1;
    }
    std::printf("%d of %d elements are above %f\n", count, n, limit);
    CHECK(cudaFree(d_data));
    CHECK(cudaFree(d_count));
    return 0;
}
