// Writes nothing, and hopes that the buffer still holds the result of the original.
// row: 1
// caught: outputs hold secret bytes before each run; an element that still does was not written
// emulator: wrong
// cuda: wrong
// words: was not written
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
}
