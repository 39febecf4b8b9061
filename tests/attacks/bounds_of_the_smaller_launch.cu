// Launch bounds that hold for the first launch, not for the second.
// row: 5
// caught: each launch is run with its own block
// emulator: unsafe wrong
// cuda: unsafe wrong
//// both
//// original
__global__ void shiftDown(const int* in, int* out, int n) {
//// candidate
__global__ void __launch_bounds__(64) shiftDown(const int* in, int* out, int n) {
//// both
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i + 1 < n ? in[i + 1] : 0;
}

void run(const int* in, int* out, int n) {
    shiftDown<<<(n + 63) / 64, 64>>>(in, out, n);
    shiftDown<<<(n + 255) / 256, 256>>>(in, out, n);
}
