// What lanes of a warp tell each other.

// warpwright: array a[n] in
// warpwright: array out[n * 6] out
// warpwright: launch grid((n + 95) / 96) block(96)
// warpwright: shape n=960
__global__ void shuffles(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = i < n ? a[i] : 0, lane = threadIdx.x % 32;
    int up = __shfl_up_sync(0xffffffffu, x, 3), down = __shfl_down_sync(0xffffffffu, x, 5, 16);
    int other = __shfl_xor_sync(0xffffffffu, x, 9), from = __shfl_sync(0xffffffffu, x, lane * 7, 8);
    unsigned odd = __ballot_sync(0xffffffffu, x & 1);
    int all = __all_sync(0xffffffffu, x > -9) * 2 + __any_sync(0xffffffffu, x > 7);
    if (i >= n) return;
    out[6 * i + 0] = up;
    out[6 * i + 1] = down;
    out[6 * i + 2] = other;
    out[6 * i + 3] = from;
    out[6 * i + 4] = odd;
    out[6 * i + 5] = all;
}

// warpwright: array a[n] in
// warpwright: array out[n * 4] out
// warpwright: launch grid(n / 64) block(64)
// warpwright: shape n=1024
__global__ void agreements(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i];
    int same = 0;
    out[4 * i + 0] = __match_any_sync(0xffffffffu, x);
    out[4 * i + 1] = __match_all_sync(0xffffffffu, x / 32, &same) + same;
    out[4 * i + 2] = __reduce_add_sync(0xffffffffu, x) + __reduce_max_sync(0xffffffffu, x);
    out[4 * i + 3] = __reduce_xor_sync(0xffffffffu, (unsigned)x);
}

// warpwright: array a[n] in
// warpwright: array out[n] out
// warpwright: array counts[(n + 255) / 256] out
// warpwright: launch grid((n + 255) / 256) block(256)
// warpwright: shape n=2000
__global__ void compact(const int* a, int* out, int* counts, int n) {
    __shared__ int offsets[9];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool keep = i < n && a[i] > 0;
    unsigned kept = __ballot_sync(0xffffffffu, keep);
    if (lane == 0) offsets[warp + 1] = __popc(kept);
    __syncthreads();
    if (threadIdx.x == 0) {
        offsets[0] = 0;
        for (int w = 1; w <= 8; ++w) offsets[w] += offsets[w - 1];
        counts[blockIdx.x] = offsets[8];
    }
    __syncthreads();
    if (keep) out[blockIdx.x * 256 + offsets[warp] + __popc(kept & ((1u << lane) - 1))] = a[i];
}

// warpwright: array a[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void warp_scan(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int x = i < n ? a[i] : 0;
    for (int step = 1; step < 32; step *= 2) {
        int left = __shfl_up_sync(0xffffffffu, x, step);
        if (lane >= step) x += left;
    }
    if (i < n) out[i] = x;
}

// warpwright: array a[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 63) / 64) block(64)
// warpwright: shape n=640
__global__ void through_shared(const float* a, float* out, int n) {
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x & 32;
    kept[threadIdx.x] = i < n ? a[i] : 0.0f;
    __syncwarp();
    float x = kept[warp + (threadIdx.x + 1) % 32];
    __syncwarp();
    kept[threadIdx.x] = x * 2.0f;
    __syncwarp();
    if (i < n) out[i] = kept[warp + (threadIdx.x ^ 1) % 32];
}
