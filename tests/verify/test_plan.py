"""Sizes that nobody knows beforehand, and sizes of nothing."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.syntax.source import Source
from warpwright.verify.plan import empty_shape, hidden_shape

ONE = """// warpwright: array in[n] in
// warpwright: array out[n] out
{more}__global__ void copy(const float* in, float* out, int n) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}}
void run(const float* in, float* out, int n) {{ copy<<<{grid}, 64>>>(in, out, n); }}
"""


def problem_of(more: str = "", grid: str = "(n + 63) / 64") -> Problem:
    program = analyze(Source("/nowhere/a.cu", ONE.format(more=more, grid=grid).encode()))
    problem = find_problem(program, program.defined_kernels[0])
    assert not isinstance(problem, Missing), problem
    return problem


def test_the_hidden_size_is_another_for_each_seed_and_none_that_is_known() -> None:
    problem = problem_of()
    drawn = [hidden_shape(problem, seed) for seed in range(50)]
    assert all(shape is not None and shape not in problem.check for shape in drawn)
    assert len({shape["n"] for shape in drawn if shape}) > 40
    assert hidden_shape(problem, 7) == hidden_shape(problem, 7)


def test_the_hidden_size_has_what_all_known_ones_have_in_common() -> None:
    of_16 = problem_of("// warpwright: check n=16\n// warpwright: check n=48\n// warpwright: check n=1040\n")
    drawn = [shape["n"] for seed in range(50) if (shape := hidden_shape(of_16, seed))]
    assert len(set(drawn)) > 30
    assert all(n % 16 == 0 for n in drawn)
    assert hidden_shape(problem_of("// warpwright: check n=64\n"), 1) is None, "a size that is always the same stays"


@pytest.mark.parametrize(
    ("more", "grid", "shape", "words"),
    [
        ("", "8", {"n": 0}, ""),
        ("", "(n + 63) / 64", None, "n = 0 was left out: the grid's x is 0, which is less than 1"),
        ("// warpwright: check n=64\n", "8", None, ""),
    ],
    ids=["fixed-grid", "no-blocks", "one-is-no-size"],
)
def test_the_empty_size(more: str, grid: str, shape: dict[str, int] | None, words: str) -> None:
    assert empty_shape(problem_of(more, grid)) == (shape, words)
