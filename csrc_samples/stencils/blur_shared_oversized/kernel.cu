// Blurs a signal with weights 1/4, 1/2, 1/4 through a tile in shared memory; outside the signal stands zero.
// Pitfall: the tile has 4096 floats where 258 are used, so each block asks for 16 KiB instead of 1 KiB.
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

#define BLOCK 256

__global__ void blur(const float* signal, float* blurred, int n) {
    __shared__ float tile[4096];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    int at = threadIdx.x + 1;

    tile[at] = i < n ? signal[i] : 0.0f;
    if (threadIdx.x == 0) tile[0] = i > 0 ? signal[i - 1] : 0.0f;
    if (threadIdx.x == BLOCK - 1) tile[BLOCK + 1] = i + 1 < n ? signal[i + 1] : 0.0f;
    __syncthreads();

    if (i < n) blurred[i] = 0.25f * tile[at - 1] + 0.5f * tile[at] + 0.25f * tile[at + 1];
}

int main() {
    const int n = 1 << 23;
    std::vector<float> signal(n), blurred(n);
    for (int i = 0; i < n; i++) signal[i] = static_cast<float>(i % 77);

    float *d_signal, *d_blurred;
    CHECK(cudaMalloc(&d_signal, n * sizeof(float)));
    CHECK(cudaMalloc(&d_blurred, n * sizeof(float)));
    CHECK(cudaMemcpy(d_signal, signal.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    blur<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(d_signal, d_blurred, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(blurred.data(), d_blurred, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float left = i > 0 ? signal[i - 1] : 0.0f, right = i + 1 < n ? signal[i + 1] : 0.0f;
        float expected = 0.25f * left + 0.5f * signal[i] + 0.25f * right;
        if (std::fabs(blurred[i] - expected) > 1e-4f) {
            std::printf("element %d: %f, expected %f\n", i, blurred[i], expected);
            return 1;
        }
    }
    std::printf("blurred %d elements\n", n);
    CHECK(cudaFree(d_signal));
    CHECK(cudaFree(d_blurred));
    return 0;
}
