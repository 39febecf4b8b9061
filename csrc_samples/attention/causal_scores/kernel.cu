// Attention scores q * k / sqrt(dim) of one head, masked so that no query sees later keys.
// Pitfall: lanes of a warp read neighbouring keys, whose elements are dim floats apart; the masked half is computed.
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

__global__ void causal_scores(const float* q, const float* k, float* scores, int length, int dim) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    if (query >= length || key >= length) return;

    float dot = 0.0f;
    for (int d = 0; d < dim; d++) {
        dot += q[query * dim + d] * k[key * dim + d];
    }
    scores[query * length + key] = key <= query ? dot / sqrtf(dim) : -1e9f;
}

int main() {
    const int length = 2048, dim = 64;
    std::vector<float> q(length * dim), k(length * dim), scores(length * length);
    for (int i = 0; i < length * dim; i++) {
        q[i] = 0.1f * static_cast<float>(i % 17) - 0.8f;
        k[i] = 0.1f * static_cast<float>(i % 19) - 0.9f;
    }

    float *d_q, *d_k, *d_scores;
    CHECK(cudaMalloc(&d_q, q.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_k, k.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_scores, scores.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_q, q.data(), q.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_k, k.data(), k.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 block(16, 16);
    dim3 grid((length + 15) / 16, (length + 15) / 16);
    causal_scores<<<grid, block>>>(d_q, d_k, d_scores, length, dim);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(scores.data(), d_scores, scores.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < length; i++) {
        for (int j = 0; j < length; j++) {
            float expected = -1e9f;
            if (j <= i) {
                float dot = 0.0f;
                for (int d = 0; d < dim; d++) dot += q[i * dim + d] * k[j * dim + d];
                expected = dot / std::sqrt(static_cast<float>(dim));
            }
            if (std::fabs(scores[i * length + j] - expected) > 1e-3f) {
                std::printf("query %d, key %d: %f, expected %f\n", i, j, scores[i * length + j], expected);
                return 1;
            }
        }
    }
    std::printf("scores of %d queries\n", length);
    CHECK(cudaFree(d_q));
    CHECK(cudaFree(d_k));
    CHECK(cudaFree(d_scores));
    return 0;
}
