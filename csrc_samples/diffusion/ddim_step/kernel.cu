// One DDIM step (eta = 0): predicts the clean image from the noise estimate and moves to the next noise level.
// Pitfall: every element takes four square roots of numbers that are the same for all, and 1.0 makes the sums double.
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

__global__ void ddim_step(float* x, const float* noise, float alpha, float alpha_next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float clean = (x[i] - sqrt(1.0 - alpha) * noise[i]) / sqrt(alpha);
    x[i] = sqrt(alpha_next) * clean + sqrt(1.0 - alpha_next) * noise[i];
}

int main() {
    const int n = 8 * 4 * 512 * 512;
    const float alpha = 0.5f, alpha_next = 0.75f;
    std::vector<float> x(n), noise(n), stepped(n);
    for (int i = 0; i < n; i++) {
        x[i] = 0.1f * static_cast<float>(i % 41) - 2.0f;
        noise[i] = 0.1f * static_cast<float>(i % 37) - 1.8f;
    }

    float *d_x, *d_noise;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMalloc(&d_noise, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_noise, noise.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    ddim_step<<<(n + 255) / 256, 256>>>(d_x, d_noise, alpha, alpha_next, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(stepped.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double clean = (x[i] - std::sqrt(1.0 - alpha) * noise[i]) / std::sqrt(static_cast<double>(alpha));
        double expected = std::sqrt(static_cast<double>(alpha_next)) * clean + std::sqrt(1.0 - alpha_next) * noise[i];
        if (std::fabs(stepped[i] - expected) > 1e-4) {
            std::printf("element %d: %f, expected %f\n", i, stepped[i], expected);
            return 1;
        }
    }
    std::printf("one step on %d elements\n", n);
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_noise));
    return 0;
}
