// What the CUDA programs share: `program` runs the slow version, `program --time` prints seconds of it and of the cured
// one. Of programs that start side by side, one at a time is measured: they lock the file WARPWRIGHT_ONE_AT_A_TIME.
#pragma once
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void scale(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 0.999f + 0.001f;
}

template <typename Version>
double seconds(Version version) {
    cudaDeviceSynchronize();
    const auto start = std::chrono::steady_clock::now();
    version();
    cudaDeviceSynchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename Slow, typename Cured>
int run(int count, char** arguments, Slow slow, Cured cured) {
    const char* path = std::getenv("WARPWRIGHT_ONE_AT_A_TIME");
    const int lock = path ? open(path, O_RDONLY) : -1;
    slow();
    if (lock >= 0) flock(lock, LOCK_EX);
    if (count > 1 && std::strcmp(arguments[1], "--time") == 0) {
        cured();
        double times[2][5];
        for (int round = 0; round < 5; ++round) {
            times[0][round] = seconds(slow);
            times[1][round] = seconds(cured);
        }
        for (auto& each : times) std::sort(each, each + 5);
        std::printf("%.9f %.9f\n", times[0][2], times[1][2]);
        return 0;
    }
    cudaDeviceSynchronize();
    cudaProfilerStart();
    slow();
    cudaDeviceSynchronize();
    cudaProfilerStop();
    return 0;
}
