// Looks whether an index is one in one comparison of unsigned numbers.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array table[m] in
// warpwright: array index[n] in index(m)
// warpwright: array out[n] out
__global__ void gather(const float* table, const int* index, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int j = index[i];
//// original
    if (j < 0 || j >= m) { out[i] = 0.0f; return; }
    out[i] = table[j];
//// candidate
    out[i] = (unsigned)j < (unsigned)m ? table[j] : 0.0f;
//// both
}

void run(const float* table, const int* index, float* out, int n, int m) {
    gather<<<(n + 127) / 128, 128>>>(table, index, out, n, m);
}
