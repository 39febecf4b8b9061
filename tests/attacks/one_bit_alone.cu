// Looks at the lower bits of a mask alone.
// row: 6
// caught: whole numbers of one bit
// emulator: wrong
// cuda: wrong
// words: values differ
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void count_bits(const unsigned* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = __popc(in[i]);
//// candidate
    if (i < n) out[i] = __popc(in[i] & 0xfffff);
//// both
}

void run(const unsigned* in, int* out, int n) {
    count_bits<<<(n + 127) / 128, 128>>>(in, out, n);
}
