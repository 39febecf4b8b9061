// Kernels over a large array, launched one behind the other.
//
// device: cuda
// bound: GPU
// proposal: none
#include "_run.cuh"

int main(int count, char** arguments) {
    const int n = 1 << 28, steps = 200;
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    const auto slow = [=] {
        for (int step = 0; step < steps; ++step) scale<<<(n + 255) / 256, 256>>>(x, n);
        cudaDeviceSynchronize();
    };
    return run(count, arguments, slow, slow);
}
