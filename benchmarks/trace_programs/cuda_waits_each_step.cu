// A solver waits for the GPU after each kernel.
//
// device: cuda
// bound: synchronisation
// proposal: synchronisation
#include "_run.cuh"

int main(int count, char** arguments) {
    const int n = 1 << 21, steps = 4000;
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    const auto slow = [=] {
        for (int step = 0; step < steps; ++step) {
            scale<<<(n + 255) / 256, 256>>>(x, n);
            cudaDeviceSynchronize();  // here
        }
    };
    const auto cured = [=] {
        for (int step = 0; step < steps; ++step) scale<<<(n + 255) / 256, 256>>>(x, n);
        cudaDeviceSynchronize();
    };
    return run(count, arguments, slow, cured);
}
