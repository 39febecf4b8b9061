// The pointers move by an odd number of elements from one launch to the next.
// row: 5
// caught: pointers whose place is not known are named as not run
// emulator: correct
// cuda: correct faster slower inconclusive
// uncovered: launch
//// both
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = 2.0f * in[i] + 1.0f;
//// candidate
    if (4 * i + 3 < n) {
        float4 v = reinterpret_cast<const float4*>(in)[i];
        v.x = 2.0f * v.x + 1.0f; v.y = 2.0f * v.y + 1.0f; v.z = 2.0f * v.z + 1.0f; v.w = 2.0f * v.w + 1.0f;
        reinterpret_cast<float4*>(out)[i] = v;
    } else for (int j = 4 * i; j < n && j < 4 * i + 4; j++) out[j] = 2.0f * in[j] + 1.0f;
//// both
}
int main() { int n = 5000; float *in, *out; cudaMalloc(&in, n * sizeof(float)); cudaMalloc(&out, n * sizeof(float)); const float* p = in; float* q = out; for (int k = 0; k < 3; k++) { scale<<<(999 + 127) / 128, 128>>>(p, q, 999); p += 999; q += 999; } return cudaDeviceSynchronize(); }
