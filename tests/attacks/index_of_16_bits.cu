// Keeps the index in 16 bits, which the program's own size does not fit.
// row: 5
// caught: a size beyond what 16 bits hold
// emulator: wrong
// cuda: wrong
// words: was not written
//// both
__global__ void negate(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = -in[i];
//// candidate
    if (i < n) { short s = (short)i; int j = (unsigned short)s; out[j] = -in[j]; }
//// both
}

int main() {
    int n = 1 << 21;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    negate<<<(n + 255) / 256, 256>>>(in, out, n);
    return cudaDeviceSynchronize();
}
