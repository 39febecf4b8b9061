// Takes the last of equal values where the original takes the first.
// row: 6
// caught: values that are equal
// emulator: wrong
// cuda: wrong
// words: values differ
//// both
// warpwright: array in[rows * 32] in
// warpwright: array out[rows] out
__global__ void largest(const float* in, int* out, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int best = 0;
    for (int k = 1; k < 32; k++)
//// original
        if (in[r * 32 + k] > in[r * 32 + best]) best = k;
//// candidate
        if (in[r * 32 + k] >= in[r * 32 + best]) best = k;
//// both
    out[r] = best;
}

void run(const float* in, int* out, int rows) {
    largest<<<(rows + 63) / 64, 64>>>(in, out, rows);
}
