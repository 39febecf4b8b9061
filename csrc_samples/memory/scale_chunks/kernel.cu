// Scales an array into another one; each thread takes a chunk of 16 neighbouring elements.
// Pitfall: neighbouring lanes are 16 elements apart, so every load and store of a warp touches 32 sectors.
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

#define PER_THREAD 16

__global__ void scale_chunks(const float* x, float* y, float factor, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER_THREAD;
    for (int k = 0; k < PER_THREAD; ++k) {
        if (first + k < n) y[first + k] = factor * x[first + k];
    }
}

int main() {
    const int n = 1 << 23;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i % 509);

    float *d_x, *d_y;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    const int threads = 256;
    const int elements = threads * PER_THREAD;
    scale_chunks<<<(n + elements - 1) / elements, threads>>>(d_x, d_y, 0.5f, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) {
        if (y[i] != 0.5f * x[i]) {
            std::printf("element %d: %f\n", i, y[i]);
            return 1;
        }
    }
    std::printf("scaled %d elements\n", n);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return 0;
}
