// A structure in a variable that host code copies gets one of its two members.
// row: 1
// caught: variables that others read are outputs
// emulator: wrong
// cuda: wrong
// words: found
//// both
struct Found { int at; float value; };
__device__ Found found;
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// original
    if (i == 0) { found.at = n / 2; found.value = in[0]; }
//// candidate
    if (i == 0) found.at = n / 2;
//// both
}

void run(const float* in, float* out, int n) {
    scale<<<(n + 127) / 128, 128>>>(in, out, n);
    Found here;
    cudaMemcpyFromSymbol(&here, found, sizeof here);
}
