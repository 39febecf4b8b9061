// A list of values hands one array over as both members of a struct.
// row: 5
// caught: the launch is run as its host code makes the struct
// emulator: wrong
// cuda: wrong
//// both
struct Buffers {
    const float* in;
    float* out;
};
__global__ void blend(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
//// original
    out[i] = 2.0f * in[i];
    out[i] += 3.0f * in[i];
//// candidate
    float v = in[i];
    out[i] = 2.0f * v + 3.0f * v;
//// both
}
static void run(const Buffers& b, int n) { blend<<<(n + 127) / 128, 128>>>(b.out, b.in, n); }
int main() { int n = 50000; float *x; cudaMalloc(&x, n * sizeof(float)); run(Buffers{x, x}, n); return cudaDeviceSynchronize(); }
