"""What keeps a fix from being verified is seen before it is announced."""

from __future__ import annotations

import pytest
from warpwright.editor.verifiable import not_compiled, not_run
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


def program(text: str) -> Program:
    return analyze(Source("a.cu", text.encode()))


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("head", "gone"),
    [
        ("void f() { cudaThreadNeverWas(); }\n", "cudaThreadNeverWas (a.cu:1)"),
        ("void f() { cudaDeviceSynchronize(); }\n", ""),
        ("int cudaThreadNeverWas();\nvoid f() { cudaThreadNeverWas(); }\n", ""),
        ("#if CUDART_VERSION < 4000\nvoid f() { cudaThreadNeverWas(); }\n#endif\n", ""),
        ("// cudaThreadNeverWas()\n", ""),
    ],
)
def test_a_name_that_the_toolkit_does_not_have(head: str, gone: str) -> None:
    said = not_compiled(program(head + KERNEL))
    assert f" has no {gone}, " in said if gone else not said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KERNEL, ""),
        (KERNEL.replace("a[i] += 1.0f", 'printf("%f", a[i])'), "writes to no array"),
        (KERNEL.replace("(n + 255) / 256, 256", "1 << 20, 1024"), "is too large to emulate"),
        (KERNEL.replace("float *a", "float **a"), "How to run add is not known"),
    ],
)
def test_a_kernel_that_no_run_would_prove(text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.verify.harness.has_driver", lambda: False)
    read = program(text)
    kernel = read.kernel("add")
    assert kernel is not None
    said = not_run(read, kernel)
    assert reason in said if reason else not said
