// The second launch of a macro has another block than the first.
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
#define LAUNCH(B) scale<<<(n + (B) - 1) / (B), (B)>>>(in, out, n)
int main() { int n = 5000; float *in, *out; cudaMalloc(&in, n * sizeof(float)); cudaMalloc(&out, n * sizeof(float)); LAUNCH(128); LAUNCH(256); return cudaDeviceSynchronize(); }
