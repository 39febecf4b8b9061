// Floating-point arithmetic whose results the standard defines: equal on every machine, bit for bit.

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 8] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void plain(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    out[8 * i + 0] = x + y;
    out[8 * i + 1] = x * y - x;
    out[8 * i + 2] = fmaf(x, y, x);
    out[8 * i + 3] = x / y;
    out[8 * i + 4] = sqrtf(fabsf(x));
    out[8 * i + 5] = fminf(x, y) + fmaxf(x, 0.25f);
    out[8 * i + 6] = floorf(x) + ceilf(y) + truncf(x * 3) + rintf(y * 5) + roundf(x * 7);
    out[8 * i + 7] = copysignf(x, y) + (x < y ? x : -y);
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 12] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void directed(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    out[12 * i + 0] = __fadd_rz(x, y);
    out[12 * i + 1] = __fadd_ru(x, y);
    out[12 * i + 2] = __fadd_rd(x, y);
    out[12 * i + 3] = __fmul_rz(x, y);
    out[12 * i + 4] = __fmul_ru(x, y);
    out[12 * i + 5] = __fmul_rd(x, y);
    out[12 * i + 6] = __fmaf_rz(x, y, x);
    out[12 * i + 7] = __fmaf_ru(x, y, x);
    out[12 * i + 8] = __fmaf_rd(x, y, x);
    out[12 * i + 9] = __fdiv_ru(x, y);
    out[12 * i + 10] = __fsqrt_rd(fabsf(x));
    out[12 * i + 11] = __frcp_rz(y);
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 8] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void doubles(const double* a, const double* b, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    out[8 * i + 0] = x + y * 3.0;
    out[8 * i + 1] = fma(x, y, -x);
    out[8 * i + 2] = x / y;
    out[8 * i + 3] = sqrt(fabs(x));
    out[8 * i + 4] = __dadd_rz(x, y) + __dmul_ru(x, y);
    out[8 * i + 5] = __fma_rd(x, y, x) + __ddiv_rz(x, y);
    out[8 * i + 6] = floor(x * 10) + rint(y * 10);
    out[8 * i + 7] = fmin(x, y) - fmax(x, y);
}

// warpwright: array a[n] in
// warpwright: array out[n * 10] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void to_integers(const float* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i] * 1000.0f;
    out[10 * i + 0] = __float2int_rn(x);
    out[10 * i + 1] = __float2int_rz(x * 1e7f);
    out[10 * i + 2] = __float2int_ru(x);
    out[10 * i + 3] = __float2int_rd(x);
    out[10 * i + 4] = __float2uint_rz(x);
    out[10 * i + 5] = (int)(signed char)(int)x;
    out[10 * i + 6] = (int)(long long)(x * 1e10f);
    out[10 * i + 7] = __double2int_rn((double)x / 3);
    out[10 * i + 8] = __float_as_int(__int2float_rz(out[10 * i + 1]));
    out[10 * i + 9] = __float_as_int(__ull2float_ru((unsigned long long)i * 0x123456789abcdull));
}

// warpwright: array a[n] in
// warpwright: array out[n * 8] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void library(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    out[8 * i + 0] = erff(x);
    out[8 * i + 1] = log1pf(fabsf(x));
    out[8 * i + 2] = expm1f(x);
    out[8 * i + 3] = atanf(x);
    out[8 * i + 4] = fmodf(x, 0.3f);
    out[8 * i + 5] = cbrtf(x);
    out[8 * i + 6] = ldexpf(x, i % 40 - 20);
    out[8 * i + 7] = hypotf(x, 2.0f);
}

// warpwright: array a[n] in
// warpwright: array out[n * 4] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void library_double(const double* a, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i];
    out[4 * i + 0] = exp(x);
    out[4 * i + 1] = log(fabs(x));
    out[4 * i + 2] = sin(x) * cos(x);
    out[4 * i + 3] = pow(fabs(x), 1.7);
}

// warpwright: array a[n] in
// warpwright: array out[n * 8] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void fast(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    out[8 * i + 0] = exp2f(x);
    out[8 * i + 1] = __log2f(fabsf(x));
    out[8 * i + 2] = __sinf(x);
    out[8 * i + 3] = __cosf(x);
    out[8 * i + 4] = rsqrtf(fabsf(x));
    out[8 * i + 5] = __fdividef(1.0f, x);
    out[8 * i + 6] = __expf(x);
    asm("tanh.approx.f32 %0, %1;" : "=f"(out[8 * i + 7]) : "f"(x));
}

// warpwright: array a[n] in
// warpwright: array b[n] in
// warpwright: array out[n * 10] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=2000
__global__ void contracted(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i], z = a[n - 1 - i], w = b[n - 1 - i], p = x * w;
    double d = x, e = y, f = z, g = w;
    out[10 * i + 0] = x * y - z * w;
    out[10 * i + 1] = x * y + z * w;
    out[10 * i + 2] = z - x * y;
    out[10 * i + 3] = x * y - 1.5f;
    out[10 * i + 4] = p * p - p;
    out[10 * i + 5] = p + z;
    out[10 * i + 6] = (x + y) * (z - w) - x * x;
    out[10 * i + 7] = d * e - f * g;
    out[10 * i + 8] = f - d * e * g;
    out[10 * i + 9] = -(x * z) - y * w;
}
