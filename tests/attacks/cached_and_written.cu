// Reads what it has written through the read-only cache.
// row: 11
// caught: the emulator notes read-only loads of what the launch wrote
// emulator: unsafe
// cuda: unsafe wrong correct faster slower inconclusive
// words: read-only cache | 
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void twice(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = in[i] + 1;
//// original
    out[i] = 2 * out[i];
//// candidate
    asm volatile("" ::: "memory");
    out[i] = 2 * __ldg(out + i);
//// both
}

void run(const int* in, int* out, int n) {
    twice<<<(n + 127) / 128, 128>>>(in, out, n);
}
