// Divides each row of a matrix by its norm, which an earlier kernel has computed; a block for each row.
// Pitfall: norms[row] is loaded at every iteration, since the stores to out may change it, as far as nvcc knows.
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

__global__ void divide_by_norm(const float* in, const float* norms, float* out, int rows, int cols) {
    int row = blockIdx.x;
    if (row >= rows) return;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        out[row * cols + c] = in[row * cols + c] / norms[row];
    }
}

int main() {
    const int rows = 4096, cols = 2048;
    std::vector<float> in(rows * cols), norms(rows), out(rows * cols);
    for (int i = 0; i < rows * cols; i++) in[i] = static_cast<float>(i % 33) - 16.0f;
    for (int r = 0; r < rows; r++) norms[r] = static_cast<float>(r % 8 + 1);

    float *d_in, *d_norms, *d_out;
    CHECK(cudaMalloc(&d_in, in.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_norms, norms.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_norms, norms.data(), norms.size() * sizeof(float), cudaMemcpyHostToDevice));

    divide_by_norm<<<rows, 256>>>(d_in, d_norms, d_out, rows, cols);
    CHECK(cudaGetLastError());

    CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < rows * cols; i++) {
        float expected = in[i] / norms[i / cols];
        if (std::fabs(out[i] - expected) > 1e-5f) {
            std::printf("element %d: %f, expected %f\n", i, out[i], expected);
            return 1;
        }
    }
    std::printf("normalised %d rows\n", rows);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_norms));
    CHECK(cudaFree(d_out));
    return 0;
}
