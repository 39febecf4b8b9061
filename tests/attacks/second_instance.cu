// Wrong for the second type that the template is launched with.
// row: 5
// caught: each instance of a template that is launched is run
// emulator: wrong
// cuda: wrong
// words: as it is launched at
//// both
template <class T> __global__ void halve(const T* in, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
//// original
    if (i < n) out[i] = in[i] / T(2);
//// candidate
    if (i < n) out[i] = T(float(in[i]) * 0.5f);
//// both
}

void run(const float* a, float* b, const double* c, double* d, int n) {
    halve<float><<<(n + 127) / 128, 128>>>(a, b, n);
    halve<double><<<(n + 127) / 128, 128>>>(c, d, n);
}
