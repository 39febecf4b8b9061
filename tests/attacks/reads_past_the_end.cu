// Reads one element past the end of its input and uses it.
// row: 12
// caught: what lies behind an array differs from run to run; the emulator knows each array's end
// emulator: unsafe
// cuda: wrong unsafe
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = i + 1 < n ? in[i] + in[i + 1] : in[i];
//// candidate
    if (i < n) out[i] = in[i] + in[i + 1] * (i + 1 < n ? 1.0f : 0.0f);
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
