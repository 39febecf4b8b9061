// The one launch is in place for most sizes: its output is chosen by a condition.
// row: 5
// caught: pointers that host code may make one are named as not run
// emulator: correct
// cuda: correct faster slower inconclusive
// uncovered: launch
//// both
__global__ void blend(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    out[i] = 2.0f * in[i];
    out[i] += 3.0f * in[i];
//// candidate
    float v = in[i];
    out[i] = 2.0f * v + 3.0f * v;
//// both
}
int main() { int n = 50000; float *x, *y; cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float)); bool inplace = n > 10; float* o = inplace ? x : y; blend<<<(n + 127) / 128, 128>>>(o, x, n); return cudaDeviceSynchronize(); }
