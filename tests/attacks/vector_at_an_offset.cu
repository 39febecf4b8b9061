// Vectors of four, where a launch passes an address one element behind the start.
// row: 5
// caught: each launch is run with the offsets of its pointers
// emulator: unsafe
// cuda: unsafe
// words: as it is launched at
//// both
__global__ void negate(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    for (int k = 4 * i; k < n && k < 4 * i + 4; k++) out[k] = -in[k];
//// candidate
    if (4 * i + 3 < n) {
        float4 v = reinterpret_cast<const float4*>(in)[i];
        reinterpret_cast<float4*>(out)[i] = make_float4(-v.x, -v.y, -v.z, -v.w);
    } else {
        for (int k = 4 * i; k < n; k++) out[k] = -in[k];
    }
//// both
}

void run(const float* in, float* out, int n) {
    negate<<<(n / 4 + 128) / 128, 128>>>(in, out, n);
    negate<<<(n / 4 + 128) / 128, 128>>>(in + 1, out, n - 1);
}
