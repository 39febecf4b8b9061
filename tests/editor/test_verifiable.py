"""What keeps a fix from being verified is seen before it is announced."""

from __future__ import annotations

import pytest
from warpwright.editor.verifiable import not_run
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.syntax.source import Source

KERNEL = """\
__global__ void add(float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += 1.0f;
}
void run(float *a, int n) { add<<<(n + 255) / 256, 256>>>(a, n); }
"""
FIXED = """\
#define N 1024
__global__ void add(float *out, const float *in) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * N + y] = in[y * N + x];
}
void run(float *out, const float *in) { add<<<dim3(N / 32, N / 32), dim3(32, 32)>>>(out, in); }
"""


def program(text: str) -> Program:
    return analyze(Source("a.cu", text.encode()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KERNEL, ""),
        (KERNEL.replace("a[i] += 1.0f", 'printf("%f", a[i])'), "writes to no array"),
        (KERNEL.replace("(n + 255) / 256, 256", "1 << 20, 1024"), "is too large to emulate"),
        (KERNEL.replace("a[i] += 1.0f", "a[(int)a[i]] = 1.0f"), "two runs may differ"),
        (FIXED, ""),
        (FIXED.replace("N 1024", "N 2048"), "is too large to emulate"),
        (KERNEL.replace("float *a", "float **a"), "How to run add is not known"),
    ],
)
def test_a_kernel_that_no_run_would_prove(text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.editor.verifiable.has_driver", lambda: False)
    read = program(text)
    kernel = read.kernel("add")
    assert kernel is not None
    said = not_run(read, kernel)
    assert reason in said if reason else not said
