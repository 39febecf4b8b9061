// The host computes for long between short kernels.
//
// device: cuda
// bound: host code
// proposal: none
#include <cmath>

#include "_run.cuh"

int main(int count, char** arguments) {
    const int n = 1 << 12, steps = 200;
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    volatile double total = 0.0;
    const auto slow = [&] {
        for (int step = 0; step < steps; ++step) {
            scale<<<16, 256>>>(x, n);
            for (int i = 1; i < 60000; ++i) total = total + std::sin(static_cast<double>(i));
        }
    };
    return run(count, arguments, slow, slow);
}
