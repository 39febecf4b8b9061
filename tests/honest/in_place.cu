// In place, with the value in a register.
// row: all
// emulator: correct
// cuda: correct faster slower inconclusive
// goal: fix
//// both
// warpwright: array data[n] in-out
// warpwright: time n=40000
__global__ void k(float* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) { data[i] *= 2.0f; data[i] += 1.0f; }
//// candidate
    if (i < n) data[i] = 2.0f * data[i] + 1.0f;
//// both
}

void run(float* data, int n) {
    k<<<(n + 127) / 128, 128>>>(data, n);
}
