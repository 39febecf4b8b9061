// Counts in bins of a block's own, by atomics that hold within the block.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array bins[(n + 127) / 128 * 8] in-out
__global__ void count(const int* in, unsigned* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) atomicAdd(&bins[blockIdx.x * 8 + (in[i] & 7)], 1u);
//// candidate
    if (i < n) atomicAdd_block(&bins[blockIdx.x * 8 + (in[i] & 7)], 1u);
//// both
}

void run(const int* in, unsigned* bins, int n) {
    count<<<(n + 127) / 128, 128>>>(in, bins, n);
}
