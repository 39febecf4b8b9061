// Dot product: each block multiplies 256 pairs in parallel and leaves one partial sum.
// Pitfall: thread 0 adds the 256 products by itself while the other 255 threads wait for nothing.
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

constexpr int THREADS = 256;

__global__ void dot_thread_zero(const float* a, const float* b, float* partial, int n) {
    __shared__ float products[THREADS];

    const int i = blockIdx.x * THREADS + threadIdx.x;
    products[threadIdx.x] = i < n ? a[i] * b[i] : 0.0f;
    __syncthreads();

    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int k = 0; k < THREADS; k++) sum += products[k];
        partial[blockIdx.x] = sum;
    }
}

int main() {
    const int n = 1 << 22;
    const int blocks = (n + THREADS - 1) / THREADS;
    std::vector<float> a(n), b(n), partial(blocks);
    double expected = 0.0;
    for (int i = 0; i < n; i++) {
        a[i] = static_cast<float>(i % 5);
        b[i] = static_cast<float>(i % 3);
        expected += static_cast<double>(a[i]) * b[i];
    }

    float *d_a, *d_b, *d_partial;
    CHECK(cudaMalloc(&d_a, n * sizeof(float)));
    CHECK(cudaMalloc(&d_b, n * sizeof(float)));
    CHECK(cudaMalloc(&d_partial, blocks * sizeof(float)));
    CHECK(cudaMemcpy(d_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    dot_thread_zero<<<blocks, THREADS>>>(d_a, d_b, d_partial, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(partial.data(), d_partial, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    double dot = 0.0;
    for (float p : partial) dot += p;
    if (std::fabs(dot - expected) > 1e-6 * expected) {
        std::printf("dot product %f, expected %f\n", dot, expected);
        return 1;
    }
    std::printf("dot product of %d elements: %.0f\n", n, dot);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_partial));
    return 0;
}
