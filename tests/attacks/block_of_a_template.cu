// The second instance of a function launches with another block than the first.
// row: 5
// caught: instances of a function that launches are named where they are not run
// emulator: correct wrong
// cuda: correct faster slower inconclusive wrong
// uncovered: launch
//// both
__global__ void scale(const float* in, float* out, int n) {
//// original
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// candidate
    int i = blockIdx.x * 128 + threadIdx.x;
//// both
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
}
template <int B> void go(const float* in, float* out, int n) { scale<<<(n + B - 1) / B, B>>>(in, out, n); }
int main() { int n = 5000; float *in, *out; cudaMalloc(&in, n * sizeof(float)); cudaMalloc(&out, n * sizeof(float)); go<128>(in, out, n); go<256>(in, out, n); return cudaDeviceSynchronize(); }
