// Sums whole numbers through floats that cannot hold them.
// row: 8
// caught: whole numbers must be equal
// emulator: wrong
// cuda: wrong
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void spread(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] * 40503 + i;
//// candidate
    if (i < n) out[i] = (int)((float)in[i] * 40503.0f + (float)i);
//// both
}

void run(const int* in, int* out, int n) {
    spread<<<(n + 127) / 128, 128>>>(in, out, n);
}
