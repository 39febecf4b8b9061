// Sums of whole numbers, which wrap, in another order; a byte's range by a comparison.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    int sum = 0;
    for (int k = 0; k < 8; ++k) sum += in[(i + k) % n] * (k + 1);
    out[i] = sum > 123 ? sum : -sum;
//// candidate
    int even = 0, odd = 0;
    for (int k = 6; k >= 0; k -= 2) {
        even += in[(i + k) % n] * (k + 1);
        odd += in[(i + k + 1) % n] * (k + 2);
    }
    out[i] = even + odd > 123 ? even + odd : -(odd + even);
//// both
}

void run(const int* in, int* out, int n) { scale<<<(n + 127) / 128, 128>>>(in, out, n); }
