// A candidate that sleeps a little: slow, and right.
// row: 16
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
    __nanosleep(100);
    if (i < n) out[i] = 2.0f * in[i];
//// both
}

void run(const float* in, float* out, int n) {
    k<<<(n + 127) / 128, 128>>>(in, out, n);
}
