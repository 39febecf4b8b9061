// Walks with a pointer up to another in place of an index.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[rows * columns] in
// warpwright: array out[rows] out
__global__ void sums(const double* in, double* out, int rows, int columns) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    double sum = 0.0;
//// original
    for (int k = 0; k < columns; k++) sum += in[(size_t)r * columns + k];
//// candidate
    const double* at = in + (size_t)r * columns;
    for (const double* end = at + columns; at < end; at++) sum += *at;
//// both
    out[r] = sum;
}

void run(const double* in, double* out, int rows, int columns) {
    sums<<<(rows + 63) / 64, 64>>>(in, out, rows, columns);
}
