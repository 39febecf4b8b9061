// A template whose size is known when it is compiled.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n * 8] in
// warpwright: array out[n] out
// warpwright: time n=4000
template <typename T, int WIDTH>
__global__ void row_sum(const T* in, T* out, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    T sum = 0;
//// original
    for (int j = 0; j < WIDTH; j++) sum += in[row * WIDTH + j];
//// candidate
#pragma unroll 4
    for (int j = 0; j < WIDTH; ++j) sum = in[row * WIDTH + j] + sum;
//// both
    out[row] = sum;
}

void run(const float* in, float* out, int n) {
    row_sum<float, 8><<<(n + 127) / 128, 128>>>(in, out, n);
}
