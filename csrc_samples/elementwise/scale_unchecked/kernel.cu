// Multiplies n elements by a factor.
// Pitfall: nothing reads the launch's error, so a launch that failed shows up later, elsewhere, or never.
#include <cstdio>
#include <vector>

__global__ void scale(float* data, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = factor * data[i];
    }
}

int main() {
    const int n = 1 << 20;
    std::vector<float> data(n, 1.5f);

    float* d_data;
    cudaMalloc(&d_data, n * sizeof(float));
    cudaMemcpy(d_data, data.data(), n * sizeof(float), cudaMemcpyHostToDevice);

    scale<<<(n + 255) / 256, 256>>>(d_data, 2.0f, n);

    cudaMemcpy(data.data(), d_data, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) {
        if (data[i] != 3.0f) {
            std::printf("element %d: %f\n", i, data[i]);
            return 1;
        }
    }
    std::printf("scaled %d elements\n", n);
    cudaFree(d_data);
    return 0;
}
