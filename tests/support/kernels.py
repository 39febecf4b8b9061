"""Kernels that several tests open in an editor."""

from __future__ import annotations

# Line 2 holds characters of two and four UTF-8 bytes, of one and two UTF-16 units, before the finding.
CONFLICT = """\
__global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][32]; /* größe 😀 */ int x = threadIdx.x; int y = threadIdx.y;
    tile[y][x] = in[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x];
    __syncthreads();
    /* é😀 */ out[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = tile[x][y];
}

void run(const float* in, float* out, int n) {
    transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(in, out, n);
    if (cudaGetLastError() != cudaSuccess) return;
}
"""

CLEAN = CONFLICT.replace("tile[32][32]", "tile[32][33]")

SEARCHED = "// warpwright: shape n=64\n// warpwright: check n=96\n" + CONFLICT.replace(
    "const float* in, float* out, int n) {\n    __shared__",
    "const float* __restrict__ in, float* __restrict__ out, int n) {\n    __shared__",
)
"""For a search: two rewrites apply, and what they make is tried at few sizes, in a third of the time."""
