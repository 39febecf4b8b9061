// Turns the 256 counts of each segment into offsets, where its elements begin (an exclusive running sum).
// Pitfall: the block loads and stores together, and between two barriers thread 0 adds alone.
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

__global__ void segment_offsets(const float* counts, float* offsets, int segments) {
    __shared__ float s[256];
    int segment = blockIdx.x;
    if (segment >= segments) return;

    s[threadIdx.x] = counts[segment * 256 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float before = 0.0f;
        for (int i = 0; i < 256; i++) {
            float count = s[i];
            s[i] = before;
            before += count;
        }
    }
    __syncthreads();
    offsets[segment * 256 + threadIdx.x] = s[threadIdx.x];
}

int main() {
    const int segments = 16384;
    const int n = segments * 256;
    std::vector<float> counts(n), offsets(n);
    for (int i = 0; i < n; i++) counts[i] = static_cast<float>(i % 6);

    float *d_counts, *d_offsets;
    CHECK(cudaMalloc(&d_counts, n * sizeof(float)));
    CHECK(cudaMalloc(&d_offsets, n * sizeof(float)));
    CHECK(cudaMemcpy(d_counts, counts.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    segment_offsets<<<segments, 256>>>(d_counts, d_offsets, segments);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(offsets.data(), d_offsets, n * sizeof(float), cudaMemcpyDeviceToHost));
    float before = 0.0f;
    for (int i = 0; i < n; i++) {
        if (i % 256 == 0) before = 0.0f;
        if (std::fabs(offsets[i] - before) > 1e-3f) {
            std::printf("element %d: %f, expected %f\n", i, offsets[i], before);
            return 1;
        }
        before += counts[i];
    }
    std::printf("offsets of %d segments\n", segments);
    CHECK(cudaFree(d_counts));
    CHECK(cudaFree(d_offsets));
    return 0;
}
