// Right but for sizes that leave 13 of 16 elements.
// row: 5
// caught: sizes of every remainder by what the texts take one by
// emulator: wrong
// cuda: wrong
// words: values differ
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void up(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i] + 1.0f;
//// candidate
    if ((n & 15) > 12 && (n & 15) < 14 && i / 16 == n / 16) v = in[i];
//// both
    out[i] = v;
}

void run(const float* in, float* out, int n) {
    up<<<(n + 127) / 128, 128>>>(in, out, n);
}
