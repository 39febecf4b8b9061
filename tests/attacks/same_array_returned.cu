// A function returns the array that it is given.
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
static float* in_place_of(float* p, bool is_small) {
    if (is_small) return p;
    float* made;
    cudaMalloc(&made, 50000 * sizeof(float));
    return made;
}
int main() { int n = 50000; float *x; cudaMalloc(&x, n * sizeof(float)); float *y = in_place_of(x, n < 60000); blend<<<(n + 127) / 128, 128>>>(y, x, n); return cudaDeviceSynchronize(); }
