// A kernel that writes only where a condition holds, in both texts.
// row: 1
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void positives(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) if (in[i] > 0.0f) out[i] = sqrtf(in[i]);
//// candidate
    if (i >= n) return;
    const float x = in[i];
    if (x > 0.0f) out[i] = sqrtf(x);
//// both
}

void run(const float* in, float* out, int n) {
    positives<<<(n + 127) / 128, 128>>>(in, out, n);
}
