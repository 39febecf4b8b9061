// Swaps the names of two parameters, and with them what they are.
// row: 13
// caught: both sides are launched with the original's arguments, in the order of its parameters
// emulator: not-run wrong
// cuda: not-run wrong
//// both
// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n] out
//// original
__global__ void subtract(const float* a, const float* b, float* out, int n) {
//// candidate
__global__ void subtract(const float* b, const float* a, float* out, int n) {
//// both
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] - b[i];
}

void run(const float* a, const float* b, float* out, int n) { subtract<<<(n + 127) / 128, 128>>>(a, b, out, n); }
