// Asks for blocks that have no room in the registers, so that nothing runs.
// row: 11
// caught: registers and threads are counted before anything runs
// emulator: wrong
// cuda: wrong
// words: launch
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void gather(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
//// original
    for (int k = 0; k < 96; k++) sum += in[(i + k * 7) % n];
//// candidate
    float all[96];
#pragma unroll
    for (int k = 0; k < 96; k++) all[k] = in[(i + k * 7) % n];
    __threadfence();
#pragma unroll
    for (int k = 0; k < 96; k++) sum += all[k];
//// both
    out[i] = sum;
}

void run(const float* in, float* out, int n) {
    gather<<<(n + 1023) / 1024, 1024>>>(in, out, n);
}
