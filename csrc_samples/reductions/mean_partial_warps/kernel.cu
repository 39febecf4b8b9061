// The mean of each run of 100 samples, a block of 100 threads for each run.
// Pitfall: 100 threads are three warps and an eighth of one; the sum is done by one thread of them.
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

#define SAMPLES 100

__global__ void run_mean(const float* samples, float* means, int runs) {
    __shared__ float buffer[SAMPLES];
    if (blockIdx.x >= runs) return;

    buffer[threadIdx.x] = samples[blockIdx.x * SAMPLES + threadIdx.x];
    __syncthreads();

    if (threadIdx.x == 0) {
        float sum = 0.0;
        for (int s = 0; s < SAMPLES; s++) {
            sum = sum + buffer[s];
        }
        means[blockIdx.x] = sum / SAMPLES;
    }
}

int main() {
    const int runs = 65536;
    std::vector<float> samples(runs * SAMPLES), means(runs);
    for (int i = 0; i < runs * SAMPLES; i++) samples[i] = static_cast<float>(i % 17);

    float *d_samples, *d_means;
    CHECK(cudaMalloc(&d_samples, samples.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_means, runs * sizeof(float)));
    CHECK(cudaMemcpy(d_samples, samples.data(), samples.size() * sizeof(float), cudaMemcpyHostToDevice));

    run_mean<<<runs, SAMPLES>>>(d_samples, d_means, runs);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(means.data(), d_means, runs * sizeof(float), cudaMemcpyDeviceToHost));
    for (int r = 0; r < runs; r++) {
        float sum = 0.0f;
        for (int s = 0; s < SAMPLES; s++) sum += samples[r * SAMPLES + s];
        if (std::fabs(means[r] - sum / SAMPLES) > 1e-4f) {
            std::printf("run %d: %f, expected %f\n", r, means[r], sum / SAMPLES);
            return 1;
        }
    }
    std::printf("means of %d runs\n", runs);
    CHECK(cudaFree(d_samples));
    CHECK(cudaFree(d_means));
    return 0;
}
