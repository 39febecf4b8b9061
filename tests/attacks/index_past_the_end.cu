// Looks whether an index is below zero, and not whether it is too large.
// row: 6
// caught: indices past the end, where the original looks at them
// emulator: unsafe
// cuda: wrong unsafe
// words: not safe | 
//// both
// warpwright: array table[m] in
// warpwright: array index[n] in index(m)
// warpwright: array out[n] out
__global__ void look_up(const float* table, const int* index, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    int j = index[i];
    out[i] = j >= 0 && j < m ? table[j] : 0.0f;
//// candidate
    int j = index[i];
    out[i] = j >= 0 ? table[j] : 0.0f;
//// both
}

void run(const float* table, const int* index, float* out, int n, int m) {
    look_up<<<(n + 127) / 128, 128>>>(table, index, out, n, m);
}
