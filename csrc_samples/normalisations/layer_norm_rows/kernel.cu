// Layer norm of each row of a matrix with a scale and a shift for each column, one thread for each row.
// Pitfall: neighbouring lanes are a whole row apart in each of the three passes over x, and in the stores.
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

__global__ void layer_norm_rows(const float* x, const float* gamma, const float* beta, float* y, int tokens, int hidden,
                                float eps) {
    const int token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens) return;

    float mean = 0.0f;
    for (int h = 0; h < hidden; h++) mean += x[token * hidden + h];
    mean /= hidden;

    float variance = 0.0f;
    for (int h = 0; h < hidden; h++) {
        float d = x[token * hidden + h] - mean;
        variance += d * d;
    }
    variance /= hidden;

    for (int h = 0; h < hidden; h++) {
        y[token * hidden + h] = (x[token * hidden + h] - mean) / sqrtf(variance + eps) * gamma[h] + beta[h];
    }
}

int main() {
    const int tokens = 8192, hidden = 768;
    const float eps = 1e-5f;
    std::vector<float> x(tokens * hidden), y(tokens * hidden), gamma(hidden), beta(hidden);
    for (int i = 0; i < tokens * hidden; i++) x[i] = 0.1f * static_cast<float>(i % 89) - 4.0f;
    for (int h = 0; h < hidden; h++) {
        gamma[h] = 1.0f + 0.01f * static_cast<float>(h % 10);
        beta[h] = 0.1f * static_cast<float>(h % 3);
    }

    float *d_x, *d_y, *d_gamma, *d_beta;
    CHECK(cudaMalloc(&d_x, tokens * hidden * sizeof(float)));
    CHECK(cudaMalloc(&d_y, tokens * hidden * sizeof(float)));
    CHECK(cudaMalloc(&d_gamma, hidden * sizeof(float)));
    CHECK(cudaMalloc(&d_beta, hidden * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), tokens * hidden * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_gamma, gamma.data(), hidden * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_beta, beta.data(), hidden * sizeof(float), cudaMemcpyHostToDevice));

    layer_norm_rows<<<(tokens + 127) / 128, 128>>>(d_x, d_gamma, d_beta, d_y, tokens, hidden, eps);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(y.data(), d_y, tokens * hidden * sizeof(float), cudaMemcpyDeviceToHost));
    for (int t = 0; t < tokens; t++) {
        const float* row = &x[t * hidden];
        double mean = 0.0, variance = 0.0;
        for (int h = 0; h < hidden; h++) mean += row[h];
        mean /= hidden;
        for (int h = 0; h < hidden; h++) variance += (row[h] - mean) * (row[h] - mean);
        variance /= hidden;
        for (int h = 0; h < hidden; h++) {
            double expected = (row[h] - mean) / std::sqrt(variance + eps) * gamma[h] + beta[h];
            if (std::fabs(y[t * hidden + h] - expected) > 1e-3) {
                std::printf("token %d, element %d: %f, expected %f\n", t, h, y[t * hidden + h], expected);
                return 1;
            }
        }
    }
    std::printf("layer norm of %d tokens\n", tokens);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_y));
    CHECK(cudaFree(d_gamma));
    CHECK(cudaFree(d_beta));
    return 0;
}
