// A workspace is allocated and freed in each step.
//
// device: cuda
// bound: set-up
// proposal: keep memory
#include "_run.cuh"

int main(int count, char** arguments) {
    const int n = 1 << 23, steps = 400;
    float* kept;
    cudaMalloc(&kept, n * sizeof(float));
    const auto slow = [=] {
        for (int step = 0; step < steps; ++step) {
            float* workspace;
            cudaMalloc(&workspace, n * sizeof(float));  // here
            scale<<<(n + 255) / 256, 256>>>(workspace, n);
            cudaFree(workspace);  // here
        }
    };
    const auto cured = [=] {
        for (int step = 0; step < steps; ++step) scale<<<(n + 255) / 256, 256>>>(kept, n);
        cudaDeviceSynchronize();
    };
    return run(count, arguments, slow, cured);
}
