// Rounds halves to even by the conversion in place of the function.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void to_bytes(const float* in, signed char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    out[i] = (signed char)fminf(fmaxf(rintf(in[i] * 32.0f), -128.0f), 127.0f);
//// candidate
    out[i] = (signed char)__float2int_rn(fminf(fmaxf(in[i] * 32.0f, -128.0f), 127.0f));
//// both
}

void run(const float* in, signed char* out, int n) {
    to_bytes<<<(n + 127) / 128, 128>>>(in, out, n);
}
