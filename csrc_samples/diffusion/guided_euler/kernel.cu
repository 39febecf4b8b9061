// Classifier-free guidance and an Euler step: the two noise estimates lie one after the other in one array.
// Pitfall: each thread takes four neighbouring pixels one by one; a lane's loads lie 16 bytes from its neighbour's.
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

__global__ void guided_euler(float* latent, const float* noise, float guidance, float sigma, float sigma_next, int n) {
    int base = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int k = 0; k < 4; k++) {
        int i = base + k;
        if (i < n) {
            float without = noise[i];
            float with = noise[n + i];
            float direction = without + guidance * (with - without);
            latent[i] += (sigma_next - sigma) * direction;
        }
    }
}

int main() {
    const int n = 4 * 4 * 512 * 512;
    const float guidance = 7.5f, sigma = 2.0f, sigma_next = 1.5f;
    std::vector<float> latent(n), noise(2 * n), moved(n);
    for (int i = 0; i < n; i++) latent[i] = 0.1f * static_cast<float>(i % 31) - 1.5f;
    for (int i = 0; i < 2 * n; i++) noise[i] = 0.1f * static_cast<float>(i % 43) - 2.0f;

    float *d_latent, *d_noise;
    CHECK(cudaMalloc(&d_latent, n * sizeof(float)));
    CHECK(cudaMalloc(&d_noise, 2 * n * sizeof(float)));
    CHECK(cudaMemcpy(d_latent, latent.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_noise, noise.data(), 2 * n * sizeof(float), cudaMemcpyHostToDevice));

    guided_euler<<<(n + 1023) / 1024, 256>>>(d_latent, d_noise, guidance, sigma, sigma_next, n);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(moved.data(), d_latent, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float direction = noise[i] + guidance * (noise[n + i] - noise[i]);
        float expected = latent[i] + (sigma_next - sigma) * direction;
        if (std::fabs(moved[i] - expected) > 1e-3f) {
            std::printf("element %d: %f, expected %f\n", i, moved[i], expected);
            return 1;
        }
    }
    std::printf("one step on %d elements\n", n);
    CHECK(cudaFree(d_latent));
    CHECK(cudaFree(d_noise));
    return 0;
}
