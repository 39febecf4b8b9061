// Leaky ReLU of n elements in blocks of 200 threads.
// Pitfall: 200 is no multiple of 32, so the last warp of each block has 8 threads and 24 idle lanes.
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

__global__ void leaky_relu(const float* __restrict__ in, float* __restrict__ out, float slope, int n) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) {
        const float v = in[i];
        out[i] = v >= 0.0f ? v : slope * v;
    }
}

int main() {
    const int n = 10000000;
    const int threads = 200;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = static_cast<float>(i % 9) - 4.0f;

    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, n * sizeof(float)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    leaky_relu<<<(n + threads - 1) / threads, threads>>>(d_in, d_out, 0.125f, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        if (out[i] != (in[i] >= 0.0f ? in[i] : 0.125f * in[i])) {
            std::printf("element %d: %f\n", i, out[i]);
            return 1;
        }
    }
    std::printf("leaky relu of %d elements\n", n);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
