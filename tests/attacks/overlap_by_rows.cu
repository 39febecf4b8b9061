// Right where rows are apart, and wrong for the launch that reads one row further in the same array.
// row: 5
// caught: each launch is run with the offsets of its pointers
// emulator: wrong
// cuda: wrong
// words: as it is launched at
//// both
__global__ void shift(float* to, const float* from, int n) {
    int i = threadIdx.x;
//// original
    for (int k = i; k < n; k += blockDim.x) {
        float v = from[k];
        __syncthreads();
        to[k] = v;
        __syncthreads();
    }
//// candidate
    for (int k = n - n % blockDim.x + i - (n % blockDim.x ? 0 : blockDim.x); k >= 0; k -= blockDim.x) {
        float v = k < n ? from[k] : 0.0f;
        __syncthreads();
        if (k < n) to[k] = v;
        __syncthreads();
    }
//// both
}

int main() {
    int n = 1024;
    float *a, *b;
    cudaMalloc(&a, (n + 1) * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    shift<<<1, 128>>>(b, a, n);
    shift<<<1, 128>>>(a, a + 128, n - 128);
    return cudaDeviceSynchronize();
}
