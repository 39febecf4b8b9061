// Where lanes go different ways: loops of unequal length, switches, early ends, calls.

// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=700
__global__ void collatz(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = i + 1;
    int steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        ++steps;
    }
    out[i] = steps;
}

// warpwright: array out[width * height] out
// warpwright: launch grid((width + 15) / 16, (height + 15) / 16) block(16, 16)
// warpwright: shape width=60 height=40
__global__ void mandelbrot(int* out, int width, int height) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = -2.0f + 3.0f * px / width, cy = -1.2f + 2.4f * py / height, x = 0.0f, y = 0.0f;
    int k = 0;
    for (; k < 100 && x * x + y * y < 4.0f; ++k) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
    }
    out[py * width + px] = k;
}

__device__ __noinline__ float polynomial(float x, int degree) {
    float sum = 0.0f;
    for (int k = degree; k >= 0; --k) sum = sum * x + (float)(k + 1);
    return sum;
}

__device__ __noinline__ void swapped(float* a, float* b) {
    float was = *a;
    *a = *b;
    *b = was;
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=900
__global__ void calls(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = in[i], b = in[n - 1 - i];
    if (a < b) swapped(&a, &b);
    out[i] = polynomial(a, i % 6) - polynomial(b, 2);
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=900
__global__ void choices(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = in[i] + 8, y = i;
    switch (x % 11) {
        case 0: y = x * x; break;
        case 1: y -= 100; break;
        case 2: for (int k = 0; k < x; ++k) y ^= y << 1; break;
        case 3: y = -y; break;
        case 4: y *= 77; break;
        case 5: y = y / 3 + 1; break;
        case 6: y |= 0xff; break;
        case 7: out[i] = 5; return;
        case 8: y += out[i] * 0 + 8; break;
        default: y = __popc(y);
    }
    out[i] = y;
}

// warpwright: array data[n] in-out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=900
__global__ void nested(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int total = 0;
    for (int a = 0; a < (i & 7); ++a) {
        for (int b = a; b < 6; ++b) {
            if ((a + b + i) % 3 == 0) continue;
            if (total > 200) break;
            total += a * b + 1;
        }
        if (total % 5 == 4) total += 3;
    }
    data[i] += total;
}

typedef int (*Operation)(int, int);
__device__ int added(int a, int b) { return a + b; }
__device__ int scaled(int a, int b) { return a * b; }
__device__ int chosen(int a, int b) { return a > b ? a : -b; }
__device__ Operation operations[3] = {added, scaled, chosen};

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=500
__global__ void pointers(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[i % 3](in[i], i);
}
