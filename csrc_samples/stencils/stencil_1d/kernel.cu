// Averages each element with its three neighbours on both sides, through a tile with a halo in shared memory.
// Pitfall: the barrier is inside `if (i < n)`. In the last block some threads never reach it, which is undefined.
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

constexpr int BLOCK = 256;
constexpr int RADIUS = 3;

__global__ void stencil(const float* in, float* out, int n) {
    __shared__ float tile[BLOCK + 2 * RADIUS];

    int i = blockIdx.x * BLOCK + threadIdx.x;
    int at = threadIdx.x + RADIUS;
    if (i < n) {
        tile[at] = in[i];
        if (threadIdx.x < RADIUS) {
            int left = i - RADIUS;
            tile[at - RADIUS] = left >= 0 ? in[left] : 0.0f;
        }
        if (threadIdx.x >= BLOCK - RADIUS || i >= n - RADIUS) {
            int right = i + RADIUS;
            tile[at + RADIUS] = right < n ? in[right] : 0.0f;
        }
        __syncthreads();

        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            sum += tile[at + k];
        }
        out[i] = sum / (2 * RADIUS + 1);
    }
}

int main() {
    const int n = 1000000;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = static_cast<float>(i % 19);

    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, n * sizeof(float)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    stencil<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(d_in, d_out, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            if (i + k >= 0 && i + k < n) sum += in[i + k];
        }
        if (std::fabs(out[i] - sum / (2 * RADIUS + 1)) > 1e-4f) {
            std::printf("element %d: %f\n", i, out[i]);
            return 1;
        }
    }
    std::printf("averaged %d elements\n", n);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
