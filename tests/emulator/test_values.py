"""A problem's arguments as a launch takes them: structs by value, and variables that host code sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, StructArgument, run
from warpwright.emulator.program import Program
from warpwright.emulator.ready import make_ready
from warpwright.emulator.values import arguments_of, variables_of
from warpwright.facts.analyze import analyze
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.syntax.source import Source, read_include

TEXT = """
struct View { float* out; int width; double by; };
__constant__ float weights[4];
__constant__ int where[4];
__device__ float table[4] = {1, 2, 4, 8};

__global__ void fill(View v, const float2* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v.out[i] = in[i].x * weights[i % 4] + table[where[i % 4]] + (float)v.by * v.width;
}

int main() {
    View v;
    v.width = 3; v.by = 0.5;
    float2* in; int n = 100;
    cudaMalloc(&v.out, n * sizeof(float)); cudaMalloc(&in, n * sizeof(float2));
    fill<<<(n + 31) / 32, 32>>>(v, in, n);
}
"""


@pytest.mark.nvcc
def test_structs_and_variables_reach_the_kernel(tmp_path: Path) -> None:
    unit = analyze(Source(str(tmp_path / "a.cu"), TEXT.encode()), read_include)
    problem = find_problem(unit, unit.kernels[0])
    assert isinstance(problem, Problem), problem
    program = make_ready(unit, unit.kernels[0], problem)
    assert isinstance(program, Program), program
    case = problem.case({"v_width": 3, "n": 77})
    view, given, _ = arguments = arguments_of(problem, case, seed=4)
    variables = variables_of(problem, case, seed=4)
    assert isinstance(view, StructArgument) and isinstance(given, ArrayArgument)
    assert (view.size, set(variables)) == (24, {"weights", "where"})

    launch = Launch(case.grid, case.block, case.dynamic_shared_bytes)
    result = run(program, launch, arguments, variables=variables)
    assert (result.is_complete, result.faults) == (True, ())

    index: Any = np.arange(77) % 4
    weights = np.frombuffer(variables["weights"], dtype=np.float32)[index]
    table = np.array([1, 2, 4, 8], dtype=np.float32)[np.frombuffer(variables["where"], dtype=np.int32)[index]]
    expected = given.data.reshape(-1, 2)[:, 0].astype(np.float64) * weights + table + 1.5
    np.testing.assert_allclose(result.outputs["v.out"], expected, rtol=1e-5)
