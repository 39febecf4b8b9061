// Rotates pairs of neighbouring features by an angle that grows with the position (rotary embedding), in place.
// Pitfall: each thread computes the frequency with a double-precision pow of literals that all positions share.
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

__global__ void rotary_embedding(float* q, int positions, int dim) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    int pos = blockIdx.y;
    if (pos >= positions || pair >= dim / 2) return;

    float angle = pos * pow(10000.0, -2.0 * pair / dim);
    float c = cosf(angle), s = sinf(angle);
    float a = q[pos * dim + 2 * pair];
    float b = q[pos * dim + 2 * pair + 1];
    q[pos * dim + 2 * pair] = a * c - b * s;
    q[pos * dim + 2 * pair + 1] = a * s + b * c;
}

int main() {
    const int positions = 4096, dim = 1024;
    std::vector<float> q(positions * dim), rotated(positions * dim);
    for (int i = 0; i < positions * dim; i++) q[i] = 0.1f * static_cast<float>(i % 29) - 1.4f;

    float* d_q;
    CHECK(cudaMalloc(&d_q, q.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_q, q.data(), q.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 grid((dim / 2 + 127) / 128, positions);
    rotary_embedding<<<grid, 128>>>(d_q, positions, dim);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(rotated.data(), d_q, q.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int pos = 0; pos < positions; pos++) {
        for (int pair = 0; pair < dim / 2; pair++) {
            double angle = pos * std::pow(10000.0, -2.0 * pair / dim);
            double a = q[pos * dim + 2 * pair], b = q[pos * dim + 2 * pair + 1];
            double x = a * std::cos(angle) - b * std::sin(angle), y = a * std::sin(angle) + b * std::cos(angle);
            if (std::fabs(rotated[pos * dim + 2 * pair] - x) > 2e-3 ||
                std::fabs(rotated[pos * dim + 2 * pair + 1] - y) > 2e-3) {
                std::printf("position %d, pair %d is wrong\n", pos, pair);
                return 1;
            }
        }
    }
    std::printf("rotated %d positions\n", positions);
    CHECK(cudaFree(d_q));
    return 0;
}
