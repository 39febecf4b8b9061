// Counts by atomics that hold within a block alone, for the whole grid.
// row: 11
// caught: the emulator takes such atomics of two blocks for a race
// emulator: unsafe
// cuda: unsafe wrong correct faster slower inconclusive
// words: changes by an atomic | 
//// both
// warpwright: array in[n] in
// warpwright: array bins[16] in-out
__global__ void count(const int* in, unsigned* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) atomicAdd(&bins[in[i] & 15], 1u);
//// candidate
    if (i < n) atomicAdd_block(&bins[in[i] & 15], 1u);
//// both
}

void run(const int* in, unsigned* bins, int n) {
    count<<<(n + 127) / 128, 128>>>(in, bins, n);
}
