// Multiplies n complex numbers that are stored as real, imaginary, real, imaginary, ...: one thread for each float.
// Pitfall: even lanes take one side of the branch and odd lanes the other, so every warp runs both, and each request has
// every second lane: its 16 floats lie in 4 sectors where 2 would hold them.
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

__global__ void complex_multiply(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 2 * n) return;

    if (threadIdx.x % 2 == 0) {
        out[i] = a[i] * b[i] - a[i + 1] * b[i + 1];
    } else {
        out[i] = a[i - 1] * b[i] + a[i] * b[i - 1];
    }
}

int main() {
    const int n = 1 << 19;
    std::vector<float> a(2 * n), b(2 * n), out(2 * n);
    for (int i = 0; i < 2 * n; i++) {
        a[i] = static_cast<float>(i % 11) - 5.0f;
        b[i] = static_cast<float>(i % 7) - 3.0f;
    }

    const size_t bytes = 2 * n * sizeof(float);
    float *d_a, *d_b, *d_out;
    CHECK(cudaMalloc(&d_a, bytes));
    CHECK(cudaMalloc(&d_b, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));

    complex_multiply<<<(2 * n + 255) / 256, 256>>>(d_a, d_b, d_out, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float real = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
        float imaginary = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
        if (std::fabs(out[2 * i] - real) > 1e-4f || std::fabs(out[2 * i + 1] - imaginary) > 1e-4f) {
            std::printf("number %d: %f + %fi\n", i, out[2 * i], out[2 * i + 1]);
            return 1;
        }
    }
    std::printf("multiplied %d complex numbers\n", n);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_out));
    return 0;
}
