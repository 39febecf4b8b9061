"""The numbers that a kernel's text compares with."""

from __future__ import annotations

from warpwright.facts.analyze import analyze
from warpwright.problems.compared import compared_numbers, scaling_numbers
from warpwright.problems.guarded import guarded_arrays
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


LOOKING = """struct View { const int* mask; };
__global__ void k(const float* t, const int* at, const int* rows, const int* plain, View v, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int j = at[i];
    int m = j & 7;
    for (int k = rows[i]; k < rows[i + 1]; k++) out[i] += t[k] * 0.1f;
    if (m < 0 || !v.mask[i]) return;
    out[i] = t[plain[i]] / 3.0f;
}
"""


def test_arrays_whose_values_are_looked_at_before_they_are_used() -> None:
    program = analyze(Source("/nowhere/a.cu", LOOKING.encode()))
    kernel = program.kernel("k")
    assert kernel is not None and kernel.node is not None
    names = frozenset({"at", "rows", "plain", "v.mask"})
    assert guarded_arrays(kernel.source, kernel.node, names) == ("at", "v.mask")
    assert scaling_numbers(program, kernel) == (0.1, 3.0, 7)
