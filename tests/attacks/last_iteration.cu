// Wrong in the last step of the host's loop alone.
// row: 5
// caught: the iterations of a host loop are run: the first, the second, a middle one and the last
// emulator: wrong
// cuda: wrong
// words: with step = 99
//// both
__global__ void damp(float* x, int n, int step, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) x[i] = step == steps - 1 ? 0.0f : 0.5f * x[i];
//// candidate
    if (i < n) x[i] = 0.5f * x[i];
//// both
}

int main() {
    int n = 4096;
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    for (int step = 0; step < 100; step++) damp<<<(n + 127) / 128, 128>>>(x, n, step, 100);
    return cudaDeviceSynchronize();
}
