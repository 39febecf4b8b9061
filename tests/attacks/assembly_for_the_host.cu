// Hands the host's assembler a file to put into the program.
// row: 33
// caught: assembly outside of functions that the original has not
// emulator: unsafe
// cuda: unsafe
// words: assembly for the host
//// candidate
__asm__(".pushsection .rodata\n.incbin \"/etc/hostname\"\n.popsection\n");
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 3.0f * in[i] - 1.0f;
//// candidate
    if (i < n) out[i] = in[i] * 3.0f - 1.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
