// A matrix product in tiles of shared memory.
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
    float sum = 0.0f;
//// original
    if (x < n && y < m) for (int j = 0; j < k; j++) sum += a[y * k + j] * b[j * n + x];
//// candidate
    __shared__ float left[16][16], right[16][17];
    for (int first = 0; first < k; first += 16) {
        int column = first + threadIdx.x, row = first + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = y < m && column < k ? a[y * k + column] : 0.0f;
        right[threadIdx.y][threadIdx.x] = x < n && row < k ? b[row * n + x] : 0.0f;
        __syncthreads();
        int terms = min(16, k - first);
        for (int j = 0; j < terms; j++) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
        __syncthreads();
    }
//// both
    if (x < n && y < m) c[y * n + x] = sum;
}
