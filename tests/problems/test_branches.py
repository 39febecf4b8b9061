"""Which launches the conditions around them let a program come to, and with which values."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.problems.infer import find_problem
from warpwright.problems.launches import launches_of
from warpwright.problems.model import Problem
from warpwright.syntax.source import Source

HOST = """\
template <int B> __global__ void k(float *x) { x[blockIdx.x * B + threadIdx.x] = 1.0f; }
void run(float *x, int threads) {
  if (threads == 64) {
    k<64><<<8, threads>>>(x);
  } else {
    k<128><<<8, threads>>>(x);
  }
}
"""
CASES = """\
template <int B> __global__ void k(float *x) { x[blockIdx.x * B + threadIdx.x] = 1.0f; }
void run(float *x, int threads) {
  switch (threads) {
    case 64: k<64><<<8, threads>>>(x); break;
    case 128: k<128><<<8, threads>>>(x); break;
  }
}
"""
ONE = "int main() { int threads = 64 * 2; float *x; cudaMalloc(&x, 4096); run(x, threads); }\n"
READ = "int main(int c, char **v) { int threads = atoi(v[1]); float *x; cudaMalloc(&x, 4096); run(x, threads); }\n"
SWEPT = """\
int main() {
  float *x;
  cudaMalloc(&x, 4096);
  for (int threads = 64; threads <= 128; threads *= 2) run(x, threads);
}
"""
TWICE = "int main() { float *x; cudaMalloc(&x, 4096); run(x, 64); run(x, 128); }\n"


def launched(text: str) -> set[tuple[tuple[str, ...], str]]:
    """The instance and the block of each launch."""
    program = analyze(Source("k.cu", text.encode()))
    found = [each.problem for each in launches_of(program, program.kernels[0])]
    return {(each.instance, each.block[0]) for each in found if isinstance(each, Problem)}


@pytest.mark.parametrize("host", [HOST, CASES], ids=["if", "switch"])
def test_a_launch_that_no_call_comes_to_is_left_out(host: str) -> None:
    assert launched(host + ONE) == {(("128",), "128")}


@pytest.mark.parametrize("host", [HOST, CASES], ids=["if", "switch"])
def test_each_call_comes_to_its_own(host: str) -> None:
    assert launched(host + TWICE) == {(("64",), "64"), (("128",), "128")}


@pytest.mark.parametrize("main", ["", READ, SWEPT], ids=["no call", "command line", "loop"])
def test_a_size_that_may_be_another_excludes_no_launch(main: str) -> None:
    found = launched(CASES + main)
    assert {(("64",), "64"), (("128",), "128")} <= found


@pytest.mark.parametrize("host", [HOST, CASES], ids=["if", "switch"])
def test_a_kernel_is_run_as_the_first_launch_that_is_reached(host: str) -> None:
    program = analyze(Source("k.cu", (host + ONE).encode()))
    found = find_problem(program, program.kernels[0])
    assert isinstance(found, Problem)
    assert (found.instance, found.block[0]) == (("128",), "128")


def test_a_variable_that_is_changed_excludes_no_launch() -> None:
    changed = HOST.replace("  if (threads", "  int n = 64;\n  if (x) n = threads;\n  if (n").replace(
        "8, threads", "8, n"
    )
    assert {instance for instance, _ in launched(changed + ONE)} == {("64",), ("128",)}
