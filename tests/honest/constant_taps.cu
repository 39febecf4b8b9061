// A convolution with its taps in constant memory, in another order.
// row: 4
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
__constant__ float taps[5];
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void filter(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
//// original
    for (int j = 0; j < 5; j++)
        if (i + j < n) sum += taps[j] * in[i + j];
//// candidate
    for (int j = 4; j >= 0; j--) sum += i + j < n ? in[i + j] * taps[j] : 0.0f;
//// both
    out[i] = sum;
}

void run(const float* host, const float* in, float* out, int n) {
    cudaMemcpyToSymbol(taps, host, sizeof taps);
    filter<<<(n + 127) / 128, 128>>>(in, out, n);
}
