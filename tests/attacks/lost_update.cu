// Adds to a counter without an atomic.
// row: 11
// caught: a race is a fault in the emulator; on a GPU updates are lost
// emulator: unsafe
// cuda: wrong unsafe
//// both
// warpwright: array in[n] in
// warpwright: array count[1] in-out
// warpwright: time n=40000
__global__ void positives(const float* in, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n && in[i] > 0.0f) atomicAdd(count, 1);
//// candidate
    if (i < n && in[i] > 0.0f) *count += 1;
//// both
}

void run(const float* in, int* count, int n) {
    positives<<<(n + 127) / 128, 128>>>(in, count, n);
}
