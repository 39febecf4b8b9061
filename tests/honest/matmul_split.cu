// A matrix product whose sum is kept in two parts.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
//// both
// warpwright: array a[m * k] in
// warpwright: array b[k * n] in
// warpwright: array c[m * n] out
// warpwright: launch grid((n + 15) / 16, (m + 15) / 16) block(16, 16)
// warpwright: shape m=60 n=50 k=70
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= n || y >= m) return;
//// original
    float sum = 0.0f;
    for (int j = 0; j < k; j++) sum += a[y * k + j] * b[j * n + x];
    c[y * n + x] = sum;
//// candidate
    float even = 0.0f, odd = 0.0f;
    int j = 0;
    for (; j + 1 < k; j += 2) {
        even += a[y * k + j] * b[j * n + x];
        odd += a[y * k + j + 1] * b[(j + 1) * n + x];
    }
    if (j < k) even += a[y * k + j] * b[j * n + x];
    c[y * n + x] = even + odd;
//// both
}
