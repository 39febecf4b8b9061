// Follows an index without looking whether it is one.
// row: 6
// caught: -1 among the indices, where the original looks at them
// emulator: unsafe
// cuda: wrong unsafe
// words: not safe | 
//// both
__global__ void pick(const float* values, const int* where, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int from = where[i];
//// original
    if (from == -1) { out[i] = -1.0f; return; }
//// both
    out[i] = values[from];
}

void run(const float* values, const int* where, float* out, int n) {
    pick<<<(n + 127) / 128, 128>>>(values, where, out, n);
}
