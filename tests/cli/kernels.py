"""Small files that the tests of the commands are about."""

from __future__ import annotations

CLEAN = """\
__global__ void scale(float *data, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = factor * data[i];
    }
}
"""

# A column of a 32 x 32 tile of floats: all 32 lanes of a warp meet in one bank.
CONFLICT = """\
__global__ void transpose(const float *in, float *out) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

void launch(const float *in, float *out) {
    transpose<<<4, dim3(32, 32)>>>(in, out);
    if (cudaGetLastError() != cudaSuccess) return;
}
"""

SEARCHED = CONFLICT.replace("float *in, float *out) {", "float *__restrict__ in, float *__restrict__ out) {", 1)
"""For a search: two rewrites apply, where a third would for each of them."""

UNCHECKED = (
    CLEAN
    + """
void launch(float *data, int n) {
    scale<<<(n + 255) / 256, 256>>>(data, 2.0f, n);
}
"""
)
