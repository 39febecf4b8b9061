// Blocks that work together through shared memory.

// warpwright: array in[n] in
// warpwright: array out[(n + 255) / 256] out
// warpwright: launch grid((n + 255) / 256) block(256) shared(1024)
// warpwright: shape n=3000
__global__ void reduce_dynamic(const float* in, float* out, int n) {
    extern __shared__ float partial[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid(n / 256) block(128)
// warpwright: shape n=2048
__global__ void scan_blelloch(const int* in, int* out, int n) {
    __shared__ int kept[256];
    int t = threadIdx.x, base = blockIdx.x * 256, offset = 1;
    kept[2 * t] = in[base + 2 * t];
    kept[2 * t + 1] = in[base + 2 * t + 1];
    for (int d = 128; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) kept[offset * (2 * t + 2) - 1] += kept[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) kept[255] = 0;
    for (int d = 1; d < 256; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1, was = kept[left];
            kept[left] = kept[right];
            kept[right] += was;
        }
    }
    __syncthreads();
    out[base + 2 * t] = kept[2 * t];
    out[base + 2 * t + 1] = kept[2 * t + 1];
}

// warpwright: array in[n] in
// warpwright: array bins[64] in-out
// warpwright: launch grid((n + 255) / 256) block(256)
// warpwright: shape n=5000
__global__ void histogram(const int* in, int* bins, int n) {
    __shared__ int own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own[(in[i] * 7) & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// warpwright: array in[width * height] in
// warpwright: array out[width * height] out
// warpwright: launch grid((width + 31) / 32, (height + 31) / 32) block(32, 8)
// warpwright: shape width=200 height=150
__global__ void transpose_padded(const float* in, float* out, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// warpwright: array a[n * n] in
// warpwright: array b[n * n] in
// warpwright: array c[n * n] out
// warpwright: launch grid((n + 15) / 16, (n + 15) / 16) block(16, 16)
// warpwright: shape n=77
__global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
        right[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

// warpwright: array data[n] in-out
// warpwright: launch grid(n / 512) block(256)
// warpwright: shape n=2048
__global__ void bitonic_sort(int* data, int n) {
    __shared__ int kept[512];
    int base = blockIdx.x * 512;
    for (int k = threadIdx.x; k < 512; k += 256) kept[k] = data[base + k] * 40503 % 1009;
    for (int size = 2; size <= 512; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int low = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), high = low + stride;
            bool up = (low & size) == 0;
            if ((kept[low] > kept[high]) == up) {
                int was = kept[low];
                kept[low] = kept[high];
                kept[high] = was;
            }
        }
    __syncthreads();
    for (int k = threadIdx.x; k < 512; k += 256) data[base + k] = kept[k];
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid(n / 256) block(128)
// warpwright: shape n=2048
__global__ void wide_shared(const float* in, float* out, int n) {
    __shared__ double doubles[128];
    __shared__ float4 quads[64];
    int t = threadIdx.x, base = blockIdx.x * 256;
    doubles[t] = in[base + t] * 2.0;
    if (t < 64) quads[t] = reinterpret_cast<const float4*>(in + base)[t];
    __syncthreads();
    float4 q = quads[(t * 5) & 63];
    out[base + t] = (float)doubles[(t * 3) & 127] + q.x;
    out[base + 128 + t] = q.w - (float)doubles[t / 2] + quads[t / 2].y;
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void stencil_shared(const float* in, float* out, int n) {
    __shared__ float kept[128 + 8];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 4;
    kept[t] = i < n ? in[i] : 0.0f;
    if (threadIdx.x < 4) {
        kept[threadIdx.x] = i >= 4 ? in[i - 4] : 0.0f;
        kept[t + 128] = i + 128 < n ? in[i + 128] : 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = -4; k <= 4; ++k) sum += kept[t + k];
    if (i < n) out[i] = sum;
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid(n / 128) block(128)
// warpwright: shape n=1024
__global__ void votes_of_block(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int count = __syncthreads_count(in[i] > 0);
    int all = __syncthreads_and(in[i] > -9), any = __syncthreads_or(in[i] > 7);
    out[i] = count * 4 + all * 2 + any;
}
