// A function that is handed the kernel launches it with another block.
// row: 5
// caught: uses of the kernel that are not followed are named
// emulator: correct
// cuda: correct faster slower inconclusive
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
template <class K> void go(K k, int b, const float* in, float* out, int n) { k<<<(n + b - 1) / b, b>>>(in, out, n); }
int main() { int n = 5000; float *in, *out; cudaMalloc(&in, n * sizeof(float)); cudaMalloc(&out, n * sizeof(float)); scale<<<(n + 127) / 128, 128>>>(in, out, n); go(scale, 256, in, out, n); return cudaDeviceSynchronize(); }
