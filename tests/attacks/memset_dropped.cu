// Host code does not clear what the kernel adds to.
// row: 1
// caught: an array that host code no longer fills is read as what nothing has written
// emulator: unsafe
// cuda: unsafe
//// both
__global__ void count(const int* in, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) atomicAdd(&bins[in[i] & 15], 1);
//// candidate
    if (i < n) atomicAdd(bins + (in[i] & 15), 1);
//// both
}

int main() {
    int n = 5000, *in, *bins;
    cudaMalloc(&in, n * sizeof(int));
    cudaMalloc(&bins, 16 * sizeof(int));
//// original
    cudaMemset(bins, 0, 16 * sizeof(int));
//// both
    count<<<(n + 127) / 128, 128>>>(in, bins, n);
    return cudaDeviceSynchronize();
}
