// Turns integer levels into floats, with a scale and a zero point for each group of 64 elements.
// Pitfall: nothing looks at the launch's error; each element is divided by the group's size, a run-time value.
#include <cmath>
#include <cstdio>
#include <vector>

__global__ void dequantize(const int* levels, const float* scales, float* values, int zero, int group, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        values[i] = (levels[i] - zero) * scales[i / group];
    }
}

int main() {
    const int n = 1 << 22, group = 64;
    std::vector<int> levels(n);
    std::vector<float> scales((n + group - 1) / group), values(n);
    for (int i = 0; i < n; i++) levels[i] = i % 256;
    for (size_t g = 0; g < scales.size(); g++) scales[g] = 0.01f * static_cast<float>(g % 7 + 1);

    int* d_levels;
    float *d_scales, *d_values;
    cudaMalloc(&d_levels, n * sizeof(int));
    cudaMalloc(&d_scales, scales.size() * sizeof(float));
    cudaMalloc(&d_values, n * sizeof(float));
    cudaMemcpy(d_levels, levels.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_scales, scales.data(), scales.size() * sizeof(float), cudaMemcpyHostToDevice);

    dequantize<<<256, 256>>>(d_levels, d_scales, d_values, 128, group, n);

    cudaMemcpy(values.data(), d_values, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) {
        float expected = static_cast<float>(levels[i] - 128) * scales[i / group];
        if (std::fabs(values[i] - expected) > 1e-4f) {
            std::printf("element %d: %f, expected %f\n", i, values[i], expected);
            return 1;
        }
    }
    std::printf("dequantized %d elements\n", n);
    cudaFree(d_levels);
    cudaFree(d_scales);
    cudaFree(d_values);
    return 0;
}
