// A fill: the output is constant because that is its job.
// row: 3
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void k(float* out, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = value;
//// candidate
    for (; i < n; i += gridDim.x * blockDim.x) out[i] = value;
//// both
}

void run(float* out, int n, float value) {
    k<<<(n + 127) / 128, 128>>>(out, n, value);
}
