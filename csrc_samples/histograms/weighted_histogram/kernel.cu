// Adds each element's weight to the bin that the element belongs to.
// Pitfall: all blocks add to the same 256 bins in global memory; lanes of a warp that share a bin take turns.
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

__global__ void weighted_histogram(const int* bin, const float* weight, float* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = blockDim.x * gridDim.x;
    for (; i < n; i += stride) {
        atomicAdd(&bins[bin[i]], weight[i]);
    }
}

int main() {
    const int n = 1 << 22, num_bins = 256;
    std::vector<int> bin(n);
    std::vector<float> weight(n), bins(num_bins), expected(num_bins, 0.0f);
    unsigned int state = 12345;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        bin[i] = state >> 24;
        weight[i] = static_cast<float>(i % 2 + 1);
        expected[bin[i]] += weight[i];
    }

    int* d_bin;
    float *d_weight, *d_bins;
    CHECK(cudaMalloc(&d_bin, n * sizeof(int)));
    CHECK(cudaMalloc(&d_weight, n * sizeof(float)));
    CHECK(cudaMalloc(&d_bins, num_bins * sizeof(float)));
    CHECK(cudaMemcpy(d_bin, bin.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_weight, weight.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_bins, 0, num_bins * sizeof(float)));

    weighted_histogram<<<512, 256>>>(d_bin, d_weight, d_bins, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(bins.data(), d_bins, num_bins * sizeof(float), cudaMemcpyDeviceToHost));
    for (int b = 0; b < num_bins; b++) {
        if (std::fabs(bins[b] - expected[b]) > 1e-3f) {
            std::printf("bin %d: %f, expected %f\n", b, bins[b], expected[b]);
            return 1;
        }
    }
    std::printf("%d elements in %d bins\n", n, num_bins);
    CHECK(cudaFree(d_bin));
    CHECK(cudaFree(d_weight));
    CHECK(cudaFree(d_bins));
    return 0;
}
