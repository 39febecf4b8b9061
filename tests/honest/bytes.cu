// Four bytes at once.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const unsigned char* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] ^ 0x5a;
//// candidate
    if (4 * i + 3 < n) {
        reinterpret_cast<unsigned*>(out)[i] = reinterpret_cast<const unsigned*>(in)[i] ^ 0x5a5a5a5au;
    } else {
        for (int j = 4 * i; j < n; j++) out[j] = in[j] ^ 0x5a;
    }
//// both
}

void run(const unsigned char* in, unsigned char* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
