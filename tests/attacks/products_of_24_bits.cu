// Multiplies the low 24 bits alone.
// row: 3
// caught: whole numbers of the type's whole range
// emulator: wrong
// cuda: wrong
// words: threshold values
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3 * in[i];
//// candidate
    if (i < n) out[i] = __mul24(3, in[i]);
//// both
}

void run(const int* in, int* out, int n) { scale<<<(n + 127) / 128, 128>>>(in, out, n); }
