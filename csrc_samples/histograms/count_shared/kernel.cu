// Counts bytes: each block counts in shared memory and then adds its 256 counters to those in global memory.
// Pitfall: the shared array has 1024 counters, four times what is used, and one thread clears all of them.
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

__global__ void count_shared(const int* keys, int* counts, int n) {
    __shared__ int local[1024];

    if (threadIdx.x == 0) {
        for (int k = 0; k < 256; k++) local[k] = 0;
    }
    __syncthreads();

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&local[keys[i]], 1);
    __syncthreads();

    atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

int main() {
    const int n = 1 << 22;
    std::vector<int> keys(n), counts(256), expected(256, 0);
    for (int i = 0; i < n; i++) {
        keys[i] = (i * 7 + i / 256) % 256;
        expected[keys[i]]++;
    }

    int *d_keys, *d_counts;
    CHECK(cudaMalloc(&d_keys, n * sizeof(int)));
    CHECK(cudaMalloc(&d_counts, 256 * sizeof(int)));
    CHECK(cudaMemcpy(d_keys, keys.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_counts, 0, 256 * sizeof(int)));

    count_shared<<<(n + 255) / 256, 256>>>(d_keys, d_counts, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(counts.data(), d_counts, 256 * sizeof(int), cudaMemcpyDeviceToHost));
    for (int k = 0; k < 256; k++) {
        if (counts[k] != expected[k]) {
            std::printf("key %d: %d, expected %d\n", k, counts[k], expected[k]);
            return 1;
        }
    }
    std::printf("counted %d keys\n", n);
    CHECK(cudaFree(d_keys));
    CHECK(cudaFree(d_counts));
    return 0;
}
