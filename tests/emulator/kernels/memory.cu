// How addresses lie: strides, structures, vectors, offsets, gathers, local arrays, constants.
#include <cuda_runtime.h>

struct Particle { float x, y, z, mass; int kind; };
__constant__ float weights[16] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1};
__device__ float scale = 1.5f;

// warpwright: array in[n * 4] in
// warpwright: array out[n * 4] out
// warpwright: launch grid((n + 255) / 256) block(256)
// warpwright: shape n=3000
__global__ void copy_vectors(const float4* in, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = in[4 * i + 1];
        out[i] = make_float4(v.w, v.z, v.y, v.x);
    }
}

// warpwright: array in[n * 7 + 64] in
// warpwright: array out[n + 5] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1111
__global__ void strided(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i + 5] = in[i * 7] + in[i + 3] * scale;
}

// warpwright: array data[n * 5] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1000
__global__ void of_structs(const float* data, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Particle& p = reinterpret_cast<const Particle*>(data)[i];
    out[i] = (p.x * p.x + p.y * p.y + p.z * p.z) * p.mass;
}

// warpwright: array index[n] in index(n)
// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=1500
__global__ void gather(const int* index, const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[index[i]];
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=900
__global__ void local_array(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bins[16];
    for (int k = 0; k < 16; ++k) bins[k] = k * i;
    for (int k = 0; k < 8; ++k) bins[(in[(i + k) % n] + k) & 15] += k + 1;
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum = sum * 3 + bins[(k * 5 + i) & 15];
    out[i] = sum;
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 255) / 256) block(256)
// warpwright: shape n=2500
__global__ void convolve_constant(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k) {
        int j = i + k - 8;
        if (j >= 0 && j < n) sum += in[j] * weights[k];
    }
    out[i] = sum + weights[i % 16];
}

// warpwright: array in[width * height] in
// warpwright: array out[width * height] out
// warpwright: launch grid((width + 16) / 17, (height + 12) / 13) block(17, 13)
// warpwright: shape width=100 height=60
__global__ void stencil_2d(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = in[y * width + x] * -4.0f;
    if (x > 0) sum += in[y * width + x - 1];
    if (x + 1 < width) sum += in[y * width + x + 1];
    if (y > 0) sum += in[(y - 1) * width + x];
    if (y + 1 < height) sum += in[(y + 1) * width + x];
    out[y * width + x] = sum;
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid(6) block(128)
// warpwright: shape n=3001
__global__ void grid_stride(const float* in, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i] * 2.0f + 1.0f;
}

// warpwright: array in[n] in
// warpwright: array out[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=3001
__global__ void bytes(const unsigned char* in, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[n - 1 - i] ^ 0x5a;
}

// warpwright: array rows[n + 1] in index(1)
// warpwright: array columns[n * 4] in index(n)
// warpwright: array values[n * 4] in
// warpwright: array x[n] in
// warpwright: array y[n] out
// warpwright: launch grid((n + 127) / 128) block(128)
// warpwright: shape n=700
__global__ void sparse_rows(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0.0f;
    int end = rows[row] + row % 5;
    for (int k = rows[row]; k < end; ++k) sum += values[4 * row / 4 + k] * x[columns[row + k]];
    y[row] = sum;
}
