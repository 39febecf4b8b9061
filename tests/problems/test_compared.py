"""The numbers that a kernel's text compares with."""

from __future__ import annotations

from warpwright.facts.analyze import analyze
from warpwright.problems.compared import compared_numbers
from warpwright.syntax.source import Source

TEXT = """#define LIMIT 2000.5f
constexpr int SIZE = 1 << 20;
__device__ float half_of(float x) { return x < 77.0f ? x : x * 0.5f; }
float host(float x) { return x < 88.0f ? x : 0.0f; }
__global__ void other(float* out) { if (out[0] > 99.0f) out[0] = 0.0f; }
__global__ void k(const float* x, const int* v, float* out, int n) {
    const float edge = -12.5f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (threadIdx.x < 16 || i < 3) sum = 1.0f;
    for (int s = 128; s > 32; s >>= 1) sum += s;
    if (i < n && 1e3f < x[i] && x[i] != LIMIT && x[i] > edge) sum = fminf(x[i], 6.5f);
    if (i == 123456 || v[i] >= SIZE || v[i] == 0x7fffffff) sum = half_of(sum);
    switch (v[i]) {
        case 42: sum = 2.0f; break;
        default: break;
    }
    if (n % 999 == 12) sum = 3.0f;  // not 4321
    if (i < n) out[i] = sum;
}
"""


def test_numbers_of_the_kernel_and_of_what_it_may_call() -> None:
    program = analyze(Source("/nowhere/a.cu", TEXT.encode()))
    kernel = program.kernel("k")
    assert kernel is not None
    found = compared_numbers(program, kernel)
    assert found == (-12.5, 6.5, 12, 32, 42, 77.0, 1000.0, 2000.5, 123456, 1 << 20, 0x7FFFFFFF)
