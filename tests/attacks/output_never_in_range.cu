// The values that decide lie where no input is, so two kernels that differ look alike: the problem is at fault.
// row: 3
// caught: outputs that never change prove nothing
// emulator: not-run
// cuda: not-run
// words: the same whatever its inputs hold
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] > 2.5e38f && in[i] < 3.0e38f ? 1.0f : 0.0f;
//// candidate
    if (i < n) out[i] = in[i] > 2.5e38f && in[i] < 3.0e38f ? 2.0f : 0.0f;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
