// Shifts and masks for a division and a remainder.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] / 8u + in[i] % 16u;
//// candidate
    if (i < n) out[i] = (in[i] >> 3) + (in[i] & 15u);
//// both
}

void run(const unsigned* in, unsigned* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
