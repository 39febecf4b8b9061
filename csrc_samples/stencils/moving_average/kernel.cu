// The average of the last `window` samples at each sample of a signal.
// Pitfall: each thread adds its whole window again from global memory, though its neighbour's differs by one sample.
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

__global__ void moving_average(const float* signal, float* average, int n, int window) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;

    float sum = 0.0f;
    int used = 0;
    for (int back = 0; back < window; back++) {
        if (t - back >= 0) {
            sum += signal[t - back];
            used++;
        }
    }
    average[t] = sum / used;
}

int main() {
    const int n = 1 << 21, window = 64;
    std::vector<float> signal(n), average(n);
    for (int i = 0; i < n; i++) signal[i] = static_cast<float>(i % 50);

    float *d_signal, *d_average;
    CHECK(cudaMalloc(&d_signal, n * sizeof(float)));
    CHECK(cudaMalloc(&d_average, n * sizeof(float)));
    CHECK(cudaMemcpy(d_signal, signal.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    moving_average<<<(n + 255) / 256, 256>>>(d_signal, d_average, n, window);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(average.data(), d_average, n * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0.0;
    for (int t = 0; t < n; t++) {
        sum += signal[t];
        if (t >= window) sum -= signal[t - window];
        double expected = sum / (t + 1 < window ? t + 1 : window);
        if (std::fabs(average[t] - expected) > 1e-3) {
            std::printf("sample %d: %f, expected %f\n", t, average[t], expected);
            return 1;
        }
    }
    std::printf("averaged %d samples\n", n);
    CHECK(cudaFree(d_signal));
    CHECK(cudaFree(d_average));
    return 0;
}
