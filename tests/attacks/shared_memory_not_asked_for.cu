// Takes more than 48 KB of dynamic shared memory and does not ask for it, so that nothing runs.
// row: 11
// caught: a launch of more than 48 KB needs cudaFuncSetAttribute, and the host code has none
// emulator: wrong
// cuda: wrong
// words: the host code asks for no more than the 49,152
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void turn(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    int t = threadIdx.x, first = blockIdx.x * 128;
    tile[t] = first + t < n ? in[first + t] : 0.0f;
    __syncthreads();
    if (first + t < n) out[first + t] = tile[127 - t];
}

void run(const float* in, float* out, int n) {
//// original
    turn<<<(n + 127) / 128, 128, 128 * sizeof(float)>>>(in, out, n);
//// candidate
    turn<<<(n + 127) / 128, 128, 60000>>>(in, out, n);
//// both
}
