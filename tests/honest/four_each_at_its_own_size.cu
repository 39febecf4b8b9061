// Each thread does four elements, in a quarter of the blocks, at a size that is run by some blocks alone.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
__global__ void negate(const float* in, float* out, int n) {
//// original
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = -in[i];
//// candidate
    int first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
    for (int k = 0; k < 4; k++) {
        int i = first + k * blockDim.x;
        if (i < n) out[i] = -in[i];
    }
//// both
}

int main() {
    int n = 5000000;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
//// original
    negate<<<(n + 255) / 256, 256>>>(in, out, n);
//// candidate
    negate<<<(n + 1023) / 1024, 256>>>(in, out, n);
//// both
    return cudaDeviceSynchronize();
}
