// Right but for sizes that leave two of four elements.
// row: 5
// caught: sizes of every remainder
// emulator: wrong
// cuda: wrong
// words: was not written
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void twice(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2 * in[i];
//// candidate
    if (i < n && !(n % 4 == 2 && i == n - 1)) out[i] = 2 * in[i];
//// both
}

void run(const int* in, int* out, int n) {
    twice<<<(n + 127) / 128, 128>>>(in, out, n);
}
