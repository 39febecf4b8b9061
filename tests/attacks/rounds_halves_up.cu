// Rounds halves up where the original rounds them to even.
// row: 6
// caught: numbers half-way between two that rounding may give, at the scales that the texts have
// emulator: wrong
// cuda: wrong
// words: values differ
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void to_bytes(const float* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = fminf(fmaxf(in[i], 0.0f), 25.5f) * 10.0f;
//// original
    out[i] = (unsigned char)__float2int_rn(v);
//// candidate
    out[i] = (unsigned char)(int)(v + 0.5f);
//// both
}

void run(const float* in, unsigned char* out, int n) {
    to_bytes<<<(n + 127) / 128, 128>>>(in, out, n);
}
