// Right at every size that is less than the program's own.
// row: 27
// caught: blocks of the program's own size
// emulator: wrong
// cuda: wrong
// words: n = 5000000
//// both
__global__ void negate(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = -in[i];
//// candidate
    if (i < n) out[i] = i > 4000000 ? in[i] : -in[i];
//// both
}

int main() {
    int n = 5000000;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    negate<<<(n + 255) / 256, 256>>>(in, out, n);
    return cudaDeviceSynchronize();
}
