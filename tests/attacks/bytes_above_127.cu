// Takes unsigned bytes as signed.
// row: 3
// caught: whole numbers of the type's whole range
// emulator: wrong
// cuda: wrong
// words: threshold values
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const unsigned char* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] / 2;
//// candidate
    if (i < n) out[i] = (signed char)in[i] / 2;
//// both
}

void run(const unsigned char* in, unsigned char* out, int n) { scale<<<(n + 127) / 128, 128>>>(in, out, n); }
