// Reverses each run of 1024 elements through shared memory; a thread moves four neighbouring elements.
// Pitfall: neighbouring lanes are four floats apart in global memory, so requests move four times their data.
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

__global__ void reverse_runs(const float* in, float* out, int runs) {
    __shared__ float run[1024];
    int base = blockIdx.x * 1024;
    if (blockIdx.x >= runs) return;

    for (int k = 0; k < 4; k++) {
        run[4 * threadIdx.x + k] = in[base + 4 * threadIdx.x + k];
    }
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        out[base + 4 * threadIdx.x + k] = run[1023 - 4 * threadIdx.x - k];
    }
}

int main() {
    const int runs = 8192;
    const int n = runs * 1024;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = static_cast<float>(i % 65521);

    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, n * sizeof(float)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    reverse_runs<<<runs, 256>>>(d_in, d_out, runs);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        int mirrored = i / 1024 * 1024 + 1023 - i % 1024;
        if (out[i] != in[mirrored]) {
            std::printf("element %d: %f, expected %f\n", i, out[i], in[mirrored]);
            return 1;
        }
    }
    std::printf("reversed %d runs\n", runs);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
