// Squares n elements; each block first copies its elements into shared memory.
// Pitfall: no thread reads what another one wrote, so the shared array and both barriers do nothing but cost.
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

__global__ void square(const float* x, float* y, int n) {
    __shared__ float cache[256];
    int i = blockIdx.x * 256 + threadIdx.x;

    if (i < n) cache[threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) cache[threadIdx.x] = cache[threadIdx.x] * cache[threadIdx.x];
    __syncthreads();
    if (i < n) y[i] = cache[threadIdx.x];
}

int main() {
    const int n = 1 << 23;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = static_cast<float>(i % 1000);

    float *d_x, *d_y;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    square<<<(n + 255) / 256, 256>>>(d_x, d_y, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        if (y[i] != x[i] * x[i]) {
            std::printf("element %d: %f\n", i, y[i]);
            return 1;
        }
    }
    std::printf("squared %d elements\n", n);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    return 0;
}
