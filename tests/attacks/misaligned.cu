// Reads two floats at an odd place.
// row: 12
// caught: a misaligned address is a fault
// emulator: unsafe
// cuda: unsafe
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = i + 2 < n ? in[i + 1] + in[i + 2] : in[i];
//// candidate
    if (i < n) { if (i + 2 < n) { float2 two = *reinterpret_cast<const float2*>(in + i + 1); out[i] = two.x + two.y; } else out[i] = in[i]; }
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
