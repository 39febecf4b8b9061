// Multiplies many pairs of 8 x 8 matrices, one thread for each pair.
// Pitfall: neighbouring lanes work 64 floats apart, and every element is loaded eight times.
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

#define N 8

__global__ void batched_small(const float* a, const float* b, float* c, int batch) {
    int which = blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= batch) return;
    a += which * N * N;
    b += which * N * N;
    c += which * N * N;

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int k = 0; k < N; k++) {
                sum += a[i * N + k] * b[k * N + j];
            }
            c[i * N + j] = sum;
        }
    }
}

int main() {
    const int batch = 65536;
    const int count = batch * N * N;
    std::vector<float> a(count), b(count), c(count);
    for (int i = 0; i < count; i++) {
        a[i] = static_cast<float>(i % 7) - 3.0f;
        b[i] = static_cast<float>(i % 11) - 5.0f;
    }

    float *d_a, *d_b, *d_c;
    CHECK(cudaMalloc(&d_a, count * sizeof(float)));
    CHECK(cudaMalloc(&d_b, count * sizeof(float)));
    CHECK(cudaMalloc(&d_c, count * sizeof(float)));
    CHECK(cudaMemcpy(d_a, a.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b.data(), count * sizeof(float), cudaMemcpyHostToDevice));

    batched_small<<<(batch + 127) / 128, 128>>>(d_a, d_b, d_c, batch);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(c.data(), d_c, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int m = 0; m < batch; m++) {
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++) {
                float expected = 0.0f;
                for (int k = 0; k < N; k++) expected += a[m * N * N + i * N + k] * b[m * N * N + k * N + j];
                if (std::fabs(c[m * N * N + i * N + j] - expected) > 1e-3f) {
                    std::printf("matrix %d, element (%d, %d) is wrong\n", m, i, j);
                    return 1;
                }
            }
        }
    }
    std::printf("multiplied %d pairs of matrices\n", batch);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_c));
    return 0;
}
