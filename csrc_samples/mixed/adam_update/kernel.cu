// One step of Adam over all parameters.
// Pitfall: each element computes the two bias corrections with pow, in double precision, though all share them.
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

__global__ void adam_update(float* w, const float* g, float* m, float* v, float rate, float beta1, float beta2,
                            int step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        m[i] = beta1 * m[i] + (1.0 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1.0 - beta2) * g[i] * g[i];
        float m_hat = m[i] / (1.0 - pow((double)beta1, step));
        float v_hat = v[i] / (1.0 - pow((double)beta2, step));
        w[i] -= rate * m_hat / (sqrtf(v_hat) + 1e-8);
    }
}

int main() {
    const int n = 1 << 22, step = 10;
    const float rate = 0.001f, beta1 = 0.9f, beta2 = 0.999f;
    std::vector<float> w(n), g(n), m(n), v(n), updated(n);
    for (int i = 0; i < n; i++) {
        w[i] = 0.01f * static_cast<float>(i % 199);
        g[i] = 0.1f * static_cast<float>(i % 23) - 1.1f;
        m[i] = 0.05f * static_cast<float>(i % 13);
        v[i] = 0.02f * static_cast<float>(i % 7 + 1);
    }

    const size_t bytes = n * sizeof(float);
    float *d_w, *d_g, *d_m, *d_v;
    CHECK(cudaMalloc(&d_w, bytes));
    CHECK(cudaMalloc(&d_g, bytes));
    CHECK(cudaMalloc(&d_m, bytes));
    CHECK(cudaMalloc(&d_v, bytes));
    CHECK(cudaMemcpy(d_w, w.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_g, g.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_m, m.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_v, v.data(), bytes, cudaMemcpyHostToDevice));

    adam_update<<<(n + 255) / 256, 256>>>(d_w, d_g, d_m, d_v, rate, beta1, beta2, step, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(updated.data(), d_w, bytes, cudaMemcpyDeviceToHost));
    const double correct1 = 1.0 - std::pow(static_cast<double>(beta1), step);
    const double correct2 = 1.0 - std::pow(static_cast<double>(beta2), step);
    for (int i = 0; i < n; i++) {
        double m_hat = (beta1 * m[i] + (1.0 - beta1) * g[i]) / correct1;
        double v_hat = (beta2 * v[i] + (1.0 - beta2) * g[i] * g[i]) / correct2;
        double expected = w[i] - rate * m_hat / (std::sqrt(v_hat) + 1e-8);
        if (std::fabs(updated[i] - expected) > 1e-4) {
            std::printf("parameter %d: %f, expected %f\n", i, updated[i], expected);
            return 1;
        }
    }
    std::printf("updated %d parameters\n", n);
    CHECK(cudaFree(d_w));
    CHECK(cudaFree(d_g));
    CHECK(cudaFree(d_m));
    CHECK(cudaFree(d_v));
    return 0;
}
