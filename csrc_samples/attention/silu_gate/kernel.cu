// silu(gate) * up, where gate and up are the two halves of each row; a thread computes 8 neighbouring outputs.
// Pitfall: each lane's chunk of 8 floats starts 32 bytes after its neighbour's, so every request touches all sectors.
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

__global__ void silu_gate(const float* hidden, float* out, int rows, int width) {
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    int row = blockIdx.y;
    for (int j = start; j < start + 8 && j < width; j++) {
        float gate = hidden[row * 2 * width + j];
        float up = hidden[row * 2 * width + width + j];
        out[row * width + j] = gate / (1.0f + expf(-gate)) * up;
    }
}

int main() {
    const int rows = 1024, width = 4096;
    std::vector<float> hidden(2 * rows * width), out(rows * width);
    for (int i = 0; i < 2 * rows * width; i++) hidden[i] = 0.05f * static_cast<float>(i % 127) - 3.0f;

    float *d_hidden, *d_out;
    CHECK(cudaMalloc(&d_hidden, hidden.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_hidden, hidden.data(), hidden.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 grid((width + 8 * 128 - 1) / (8 * 128), rows);
    silu_gate<<<grid, 128>>>(d_hidden, d_out, rows, width);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int row = 0; row < rows; row++) {
        for (int j = 0; j < width; j++) {
            float gate = hidden[row * 2 * width + j], up = hidden[row * 2 * width + width + j];
            float expected = gate / (1.0f + std::exp(-gate)) * up;
            if (std::fabs(out[row * width + j] - expected) > 1e-3f) {
                std::printf("row %d, element %d: %f, expected %f\n", row, j, out[row * width + j], expected);
                return 1;
            }
        }
    }
    std::printf("gated %d rows\n", rows);
    CHECK(cudaFree(d_hidden));
    CHECK(cudaFree(d_out));
    return 0;
}
