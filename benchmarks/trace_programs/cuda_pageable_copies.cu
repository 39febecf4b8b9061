// Blocks of data are copied from pageable memory.
//
// device: cuda
// bound: copies
// proposal: pinned memory
#include <vector>

#include "_run.cuh"

int main(int count, char** arguments) {
    const int n = 1 << 24, steps = 12;
    std::vector<float> pageable(n, 1.0f);
    float *x, *pinned;
    cudaMalloc(&x, n * sizeof(float));
    cudaMallocHost(&pinned, n * sizeof(float));
    std::copy(pageable.begin(), pageable.end(), pinned);
    const auto slow = [=, &pageable] {
        for (int step = 0; step < steps; ++step) {
            cudaMemcpy(x, pageable.data(), n * sizeof(float), cudaMemcpyHostToDevice);  // here
            scale<<<(n + 255) / 256, 256>>>(x, n);
        }
        cudaDeviceSynchronize();
    };
    const auto cured = [=] {
        for (int step = 0; step < steps; ++step) {
            cudaMemcpyAsync(x, pinned, n * sizeof(float), cudaMemcpyHostToDevice);
            scale<<<(n + 255) / 256, 256>>>(x, n);
        }
        cudaDeviceSynchronize();
    };
    return run(count, arguments, slow, cured);
}
