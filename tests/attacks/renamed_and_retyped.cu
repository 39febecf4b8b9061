// Takes a parameter under another name and in another type.
// row: 13
// caught: a parameter of another name is the same where its place and its type are
// emulator: not-run
// cuda: not-run
// words: takes other parameters
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
//// original
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i];
//// candidate
__global__ void scale(const float* in, float* out, short count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = 2.0f * in[i];
//// both
}

void run(const float* in, float* out, int n) { scale<<<(n + 127) / 128, 128>>>(in, out, n); }
