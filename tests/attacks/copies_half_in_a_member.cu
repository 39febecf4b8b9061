// A member function of the host copies half as much to the device.
// row: 1
// caught: host code that differs is named, in classes too
// uncovered: host-code
// emulator: correct
// cuda: correct inconclusive slower
//// both
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: time n=40000
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (i < n) out[i] = in[i] * 2.0f + 1.0f;
//// both
}

struct Runner {
    float *in, *out;
    void run(const float* from, int n) {
//// original
        cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice);
//// candidate
        cudaMemcpy(in, from, n / 2 * sizeof(float), cudaMemcpyHostToDevice);
//// both
        scale<<<(n + 127) / 128, 128>>>(in, out, n);
    }
};
