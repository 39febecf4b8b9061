"""What is certain of a kernel that nvcc rejects, from its own words, recorded from nvcc 13.0."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.optimize.compile_errors import certain_repair
from warpwright.syntax.edits import apply_edits
from warpwright.syntax.source import Source
from warpwright.toolchain.messages import parse_messages
from warpwright.toolchain.remarks import remarks_of

KERNEL = """\
__global__ void scale(float *a, const float *b, long n, int rows) {
    long idx = blockIdx.x * blockDim.x + threadIdx.x;  // ü
    if (idx < n) {
        float v = b[idx];
        a[idx] = v * 2.0f;
    }
    __syncthreads();
}
void run(float *a, const float *b, int n) { scale<<<(n + 255) / 256, 256>>>(a, b, n, 1); }
"""
INDEX = "    long idx = blockIdx.x * blockDim.x + threadIdx.x;  // ü\n"


def told(line: int, text: str, quoted: str, caret: int, unused: str = "") -> str:
    said = f"a.cu({line}): error: {text}\n  {quoted}\n  {' ' * caret}^\n"
    warning = f'a.cu(2): warning #177-D: variable "{unused}" was declared but never referenced\n' if unused else ""
    return said + warning


def repaired(text: str, output: str) -> str | None:
    source = Source("a.cu", text.encode())
    (kernel,) = analyze(source).defined_kernels
    repair = certain_repair(kernel, remarks_of(parse_messages(output, "a.cu"), source, {}))
    return apply_edits(source.data, repair.edits).decode() if repair is not None else None


@pytest.mark.parametrize(
    ("right", "wrong", "output"),
    [
        ("b[idx];", "b[idx]", told(5, 'expected a ";"', "        a[idx] = v * 2.0f;", 8)),
        ("threadIdx.x;", "threadIdx.x", told(3, 'expected a ";"', "    if (idx < n) {", 4)),
        ("__syncthreads();", "__syncthreads()", told(8, 'expected a ";"', "}", 0)),
        (
            "threadIdx",
            "threadidx",
            told(
                2,
                'identifier "threadidx" is undefined',
                "    long idx = blockIdx.x * blockDim.x + threadidx.x;",
                41,
            ),
        ),
        (
            "__syncthreads",
            "__syncthread",
            told(7, 'identifier "__syncthread" is undefined', "    __syncthread();", 4),
        ),
        ("float v", "flaot v", told(4, 'identifier "flaot" is undefined', "        flaot v = b[idx];", 8)),
        (INDEX, "", told(2, 'identifier "idx" is undefined', "    if (idx < n) {", 8)),
    ],
)
def test_what_is_certain_is_repaired(right: str, wrong: str, output: str) -> None:
    want = KERNEL.replace("  // ü", "") if right == INDEX else KERNEL
    assert repaired(KERNEL.replace(right, wrong), output) == want


def test_a_name_that_is_used_nowhere_is_meant_everywhere() -> None:
    broken = KERNEL.replace("long idx", "long id")
    output = told(3, 'identifier "idx" is undefined', "    if (idx < n) {", 8, unused="id")
    assert repaired(broken, output) == broken.replace("idx", "id")
    assert repaired(broken, told(3, 'identifier "idx" is undefined', "    if (idx < n) {", 8)) is None


@pytest.mark.parametrize(
    ("wrong", "output"),
    [
        ("b[row]", told(4, 'identifier "row" is undefined', "        float v = b[row];", 20)),  # not rows
        ("b[idx] b[1]", told(4, 'expected a ";"', "        float v = b[idx] b[1];", 25)),  # an operator
        ("sqrft(b[idx])", told(4, 'identifier "sqrft" is undefined', "        float v = sqrft(b[idx]);", 18)),
        ("b[idx", told(4, 'expected a "]"', "        float v = b[idx;", 23)),
    ],
)
def test_what_may_mean_several_things_is_not(wrong: str, output: str) -> None:
    assert repaired(KERNEL.replace("b[idx]", wrong), output) is None


def test_an_index_is_made_up_for_no_kernel_that_may_be_launched_along_two_axes() -> None:
    broken = KERNEL.replace(INDEX, "")
    output = told(2, 'identifier "idx" is undefined', "    if (idx < n) {", 8)
    assert repaired(broken.replace("256>>>", "dim3(16, 16)>>>"), output) is None
    assert repaired(broken.replace("scale<<<", "other<<<"), output) is None


def test_an_error_elsewhere_is_none_of_the_kernels() -> None:
    broken = KERNEL.replace("n, 1); }", "n, 1) }")
    output = told(9, 'expected a ";"', broken.splitlines()[-1], len(broken.splitlines()[-1]) - 1)
    assert repaired(broken, output) is None
