"""Which faults may come of values that were made up."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.guesses import About, made_up_values
from warpwright.problems.infer import find_problem
from warpwright.syntax.source import Source

KERNEL = """\
__device__ unsigned arrived;
struct Board { int *state; };
__global__ void k(int *in, Board board) {
  BODY
}
void run(int *in, Board board) { k<<<4, 64>>>(in, board); }
"""


@pytest.mark.parametrize(
    ("body", "depends"),
    [
        ("while (atomicAdd(&arrived, 0u) < gridDim.x) { }", False),
        ("unsigned seen; do { seen = atomicAdd(&arrived, 0u); } while (seen < gridDim.x);", False),
        ("while (atomicAdd(in, 0) < 4) { }", True),
        ("int limit = in[0]; unsigned most = 2 * limit; while (atomicAdd(&arrived, 0u) < most) { }", True),
        ("while (atomicAdd(board.state, 0) < 4) { }", True),
    ],
)
def test_a_wait_depends_on_made_up_values_where_an_argument_decides_it(body: str, depends: bool) -> None:
    (kernel,) = analyze(Source("a.cu", KERNEL.replace("BODY", body).encode())).kernels
    assert bool(made_up_values(kernel)) == depends


def test_a_loop_that_a_filled_constant_ends_depends_on_made_up_values() -> None:
    text = b"""__constant__ int steps[4];
__global__ void walk(int *out) {
  int at = 0;
  while (at < 100) at += steps[threadIdx.x];
  out[threadIdx.x] = at;
}
void run(int *out, const int *host) {
  cudaMemcpyToSymbol(steps, host, sizeof steps);
  walk<<<1, 4>>>(out);
}
"""
    program = analyze(Source("walk.cu", text))
    problem = find_problem(program, program.kernels[0])
    assert not isinstance(problem, Missing)
    assert [each.name for each in problem.globals] == ["steps"]
    assert About.VALUES in {each.about for each in problem.guesses}
