// Atomic operations: their order is free, so only what does not depend on it is kept.

// warpwright: array in[n] in
// warpwright: array out[16] in-out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void atomic_integers(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = in[i];
    atomicAdd(&out[0], x);
    atomicMin(&out[1], x * i);
    atomicMax(&out[2], x * i);
    atomicOr(&out[3], 1 << (x & 31));
    atomicAnd(&out[4], ~(1 << (x & 31)));
    atomicXor(&out[5], x);
    atomicInc((unsigned*)&out[6], 99);
    atomicAdd(&out[8 + (x & 7)], 1);
    atomicAdd((unsigned long long*)&out[14], 1ull << 31);
}

// warpwright: array in[n] in
// warpwright: array out[4] in-out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void atomic_floats(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[i & 3], in[i]);
}

// warpwright: array in[n] in
// warpwright: array best[1] in-out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void by_compare_and_swap(const int* in, unsigned long long* best, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long mine = ((unsigned long long)(in[i] + 100) << 32) | i, seen = *best;
    while (mine > seen) {
        unsigned long long found = atomicCAS(best, seen, mine);
        if (found == seen) break;
        seen = found;
    }
}

__device__ unsigned finished = 0;

// warpwright: array in[n] in
// warpwright: array partial[(n + 255) / 256] out
// warpwright: array out[1] out
// warpwright: launch grid((n + 255) / 256) block(256)
// warpwright: shape n=4000
__global__ void last_block(const int* in, int* partial, int* out, int n) {
    __shared__ int kept[256];
    __shared__ bool is_last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    kept[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) kept[threadIdx.x] += kept[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = kept[0];
        __threadfence();
        is_last = atomicAdd(&finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        __threadfence();
        int sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += ((volatile int*)partial)[b];
        out[0] = sum;
    }
}
