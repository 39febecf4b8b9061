// A value is kept that the store before it changes, as the one caller passes one array twice.
// row: 5
// caught: each way to a launch is run, with the memory that its pointers share
// emulator: wrong
// cuda: wrong
// words: as it is launched at
//// both
__global__ void mix(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    out[i] = in[i] + 1.0f;
    out[i] = out[i] * in[i];
//// candidate
    float v = in[i];
    out[i] = (v + 1.0f) * v;
//// both
}

static void apply(float* out, const float* in, int n) { mix<<<(n + 255) / 256, 256>>>(out, in, n); }

int main() {
    int n = 30000;
    float* x;
    cudaMalloc(&x, n * sizeof(float));
    float* y = x;
    apply(y, x, n);
    return cudaDeviceSynchronize();
}
