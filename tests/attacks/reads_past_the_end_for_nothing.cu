// Reads one element past the end and throws it away: right until the page ends there.
// row: 12
// caught: compute-sanitizer's memcheck on arrays of exact size; the emulator knows each array's end
// emulator: unsafe
// cuda: unsafe
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) { float next = *reinterpret_cast<const volatile float*>(in + i + 1); out[i] = 2.0f * in[i] + 1.0f; if (next == 123.456f && i + 1 < n) out[i] = 2.0f * in[i] + 1.0f; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
