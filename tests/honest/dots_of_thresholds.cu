// Sums of products in another order, of inputs that are half numbers with which the text compares.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array partial[(n+255)/256] out
// warpwright: time n=40000
__global__ void dots(const float* a, const float* b, float* partial, int n) {
    __shared__ float products[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    products[t] = i < n ? a[i] * b[i] : 0.0f;
    __syncthreads();
//// original
    if (t == 0) {
        float sum = 0.0f;
        for (int k = 0; k < 256; k++) sum += products[k];
        partial[blockIdx.x] = sum;
    }
//// candidate
    if (t < 32) {
        float sum = 0.0f;
        for (int k = t; k < 256; k += 32) sum += products[k];
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
        if (t == 0) partial[blockIdx.x] = sum;
    }
//// both
}

void run(const float* a, const float* b, float* partial, int n) { dots<<<(n + 255) / 256, 256>>>(a, b, partial, n); }
