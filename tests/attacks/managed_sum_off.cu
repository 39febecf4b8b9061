// A sum in a managed variable, which host code reads, misses the last element.
// row: 1
// caught: variables that others read are outputs
// emulator: wrong
// cuda: wrong
// words: total[0]
//// both
__managed__ int total;
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; atomicAdd(&total, i % 3); }
//// candidate
    if (i < n) { out[i] = 2.0f * in[i] + 1.0f; if (i != n - 1 || n % 3 == 1) atomicAdd(&total, i % 3); }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
    cudaDeviceSynchronize();
    if (total > 7) total = 0;
}
