"""Each launch of a kernel: on each way to it, in several iterations, with the memory that its pointers share."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.launches import Launched, launches_of, project_problem
from warpwright.problems.model import Array, Pointer, Problem, Scalar
from warpwright.syntax.source import Source, read_source

KERNEL = """__global__ void axpy(float* y, const float* x, int n, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def launched(host: str, kernel: str = KERNEL) -> list[Launched]:
    program = analyze(Source("a.cu", (kernel + host).encode()))
    return launches_of(program, program.defined_kernels[0])


def passed(launch: Launched) -> str:
    """The arguments of a launch in one line: arrays with their extents, pointers with what they lead into."""
    problem = launch.problem
    assert isinstance(problem, Problem), str(problem)
    words = []
    for each in problem.arguments:
        if isinstance(each, Array):
            words.append(f"{each.name}[{each.extent}]" + (f"+{each.offset}" if each.offset != "0" else ""))
        elif isinstance(each, Pointer):
            words.append(f"{each.name}={each.array}+{each.offset}")
        elif isinstance(each, Scalar):
            words.append(f"{each.name}={each.value}")
    return " ".join(words)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("void f(float* d, float* e, int n) { axpy<<<n / 32, 32>>>(d, e, n, 2.f); }", ["y[n] x[n] n=n a=2.0"]),
        ("void f(float* d, int n) { axpy<<<n / 32, 32>>>(d, d, n, 2.f); }", ["y[n] x=y+0 n=n a=2.0"]),
        ("void f(float* d, int n) { axpy<<<n / 32, 32>>>(d, d + n, n, 2.f); }", ["y[2 * n] x=y+n n=n a=2.0"]),
        ("void f(float* d, float* e, int n) { axpy<<<n / 32, 32>>>(d + 1, e, n - 1, 2.f); }",
         ["y[n]+1 x[n - 1] n=n - 1 a=2.0"]),
        ("void f(char* d, int n) { axpy<<<n / 32, 32>>>((float*)(d + 8), (float*)d + n, n, 2.f); }",
         ["y[max(n + 2, 2 * n)]+2 x=y+n n=n a=2.0"]),
        ("void f(float* d, float* e, int n, float a) { axpy<<<n / 32, 32>>>(d, e, n, a); }\n"
         "int main() { float *p, *q; f(p, q, 100, 2.f); f(q, q, 50, 3.f); }",
         ["y[n] x[n] n=n a=2.0", "y[n] x=y+0 n=n a=3.0"]),
        ("void f(float* d, float* e, int n) { for (int t = 0; t < 9; t++) axpy<<<n / 32, 32>>>(d, e, n, t); }",
         ["y[n] x[n] n=n a=0", "y[n] x[n] n=n a=1", "y[n] x[n] n=n a=4", "y[n] x[n] n=n a=8"]),
        ("void f(float* d, int n) { for (int k = 0; k < n - 1; k++) axpy<<<1, 32>>>(d, d + k, n - k, 2.f); }",
         ["y[n] x=y+0 n=n a=2.0", "y[n] x=y+1 n=n - 1 a=2.0"]),
    ],
)  # fmt: skip
def test_what_each_launch_passes(host: str, expected: list[str]) -> None:
    found = [passed(each) for each in launched(host) if isinstance(each.problem, Problem)]
    assert found[: len(expected)] == expected


def test_the_sizes_are_those_of_the_way() -> None:
    host = (
        "void f(float* d, int n) { axpy<<<n / 32, 32>>>(d, d, n, 2.f); }\nint main() { float* p; f(p, 640); f(p, 96); }"
    )
    found = [each.problem for each in launched(host)]
    assert [problem.own_shape for problem in found if isinstance(problem, Problem)] == [{"n": 640}, {"n": 96}]


@pytest.mark.parametrize(
    ("host", "blocks"),
    [
        ("void f(float* d, float* e, int n) { for (int b = 32; b <= 256; b *= 2) axpy<<<n / b, b>>>(d, e, n, 1.f); }",
         ["32", "64", "128", "256"]),
        ("void f(float* d, float* e, int n) { for (int b : {64, 96}) axpy<<<n / b, b>>>(d, e, n, 1.f); }",
         ["64", "96"]),
        ("int main(int argc, char** argv) { int n = 100, b = atoi(argv[1]); float *d, *e; "
         "axpy<<<n / b, b>>>(d, e, n, 1.f); }", ["256", "32", "64", "96", "128", "256", "512", "1024"]),
        ("void f(float* d, float* e, int n, int b) { axpy<<<n / b, b>>>(d, e, n, 1.f); }",
         ["256", "32", "64", "96", "128", "256", "512", "1024"]),
        ("void f(float* d, float* e, int n, int b) { axpy<<<n / b, b>>>(d, e, n, 1.f); }\n"
         "int main() { float *d, *e; f(d, e, 9, 64); f(d, e, 9, 512); }", ["64", "512"]),
        ("const int sizes[] = {32, 128};\nvoid f(float* d, float* e, int n) { for (int i = 0; i < 2; i++) "
         "axpy<<<n / sizes[i], sizes[i]>>>(d, e, n, 1.f); }", ["32", "128"]),
    ],
)  # fmt: skip
def test_the_blocks_of_sweeps_and_of_sizes_from_outside(host: str, blocks: list[str]) -> None:
    assert [each.problem.block[0] for each in launched(host) if isinstance(each.problem, Problem)] == blocks


def test_a_launch_is_named_by_its_place_and_iteration() -> None:
    host = "void f(float* d, float* e, int n) {\n  for (int t = 0; t < 3; t++)\n    axpy<<<1, 32>>>(d, e, n, t);\n}"
    assert [each.name for each in launched(host)] == ["a.cu:7", "a.cu:7 with t = 1", "a.cu:7 with t = 2"]


def test_what_cannot_be_followed_is_told_for_the_launch_alone() -> None:
    host = "void f(float* d, float* e, int n) {"
    host += " axpy<<<1, 32>>>(d, d + next(), n, 1.f); axpy<<<1, 32>>>(d, e, n, 1.f); }"
    first, second = launched(host)
    assert isinstance(first.problem, Missing)
    assert "how far x lies behind its array's start is not known" in first.problem.reason
    assert isinstance(second.problem, Problem)


def test_a_kernel_that_another_file_of_the_project_launches_is_run_as_there(tmp_path: Path) -> None:
    (tmp_path / "axpy.cu").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "main.cu").write_text(
        "__global__ void axpy(float* y, const float* x, int n, float a);\n"
        "int main() { int n = 5000; float *d, *e; cudaMalloc(&d, 4 * n); cudaMalloc(&e, 8 * n);\n"
        "  axpy<<<(n + 63) / 64, 64>>>(d, e, n, 3.f); }\n",
        encoding="utf-8",
    )
    program = analyze(read_source(tmp_path / "axpy.cu"))
    problem = project_problem(program, program.defined_kernels[0])
    assert isinstance(problem, Problem)
    assert (problem.grid[0], problem.block[0], problem.launch_origin) == ("(n + 63) / 64", "64", "launch")
    assert {array.name: array.extent for array in problem.arrays} == {"y": "n", "x": "2 * n"}
    assert problem.own_shape == {"n": 5000}
    assert not problem.guesses
