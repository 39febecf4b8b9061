// A rewrite that is right whether its pointers share memory or not.
// row: 5
// emulator: correct
// cuda: faster correct inconclusive slower
//// both
__global__ void square(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    out[i] = in[i] * in[i];
//// candidate
    float v = in[i];
    out[i] = v * v;
//// both
}

void run(float* a, float* b, int n) {
    square<<<(n + 127) / 128, 128>>>(a, b, n);
    square<<<(n + 127) / 128, 128>>>(a, a, n);
    for (int k = 0; k < 4; k++) square<<<(n + 255) / 256, 256>>>(b + k * n, b + k * n, n);
}
