// Takes a maximum by an atomic that holds within a block alone, beside one that holds for all.
// row: 11
// caught: the emulator takes such atomics of two blocks for a race
// emulator: unsafe
// cuda: unsafe wrong correct faster slower inconclusive
// words: changes by an atomic | 
//// both
// warpwright: array in[n] in
// warpwright: array top[1] in-out
__global__ void largest(const int* in, int* top, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    atomicMax(top, in[i]);
//// candidate
    if (blockIdx.x & 1) atomicMax_block(top, in[i]);
    else atomicMax(top, in[i]);
//// both
}

void run(const int* in, int* top, int n) {
    largest<<<(n + 127) / 128, 128>>>(in, top, n);
}
