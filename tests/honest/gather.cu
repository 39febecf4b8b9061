// A gather by indices, loaded once.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array index[n] in index(n)
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, const int* index, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[index[i]] + in[index[i]];
//// candidate
    if (i < n) { float x = in[index[i]]; out[i] = x + x; }
//// both
}

void run(const float* in, const int* index, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, index, out, n);
}
