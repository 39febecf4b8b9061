"""The sample kernels: each compiles, has a problem and a reference, and shows the pitfall that it was written for."""

from __future__ import annotations

import ast
import runpy
import tomllib
from pathlib import Path

import pytest
from support.command import run_command
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.compile import compile_cubin

ROOT = Path(__file__).resolve().parents[2] / "csrc_samples"
SAMPLES = sorted(path.parent for path in ROOT.glob("*/*/kernel.cu"))
NAMES = [path.relative_to(ROOT).as_posix() for path in SAMPLES]

# What each one is there to show.
PITFALLS = {
    "elementwise/complex_multiply": {"divergent-branch"},
    "elementwise/saxpy": set(),
    "elementwise/scale_unchecked": {"unchecked-launch"},
    "matrix/matmul_swapped": {"uncoalesced-access"},
    "memory/copy_column": {"uncoalesced-access"},
    "memory/transpose_tiled": {"bank-conflict"},
    "reductions/reduce_interleaved": {"divergent-branch"},
    "reductions/row_sum": {"uncoalesced-access"},
    "stencils/stencil_1d": {"barrier-in-divergent-branch"},
}

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


def test_every_sample_says_what_it_shows() -> None:
    assert set(NAMES) == PITFALLS.keys()


@each_sample
def test_the_pitfall_is_found(sample: Path) -> None:
    ran = run_command("check", "kernel.cu", "--format", "json", cwd=sample)
    found = {finding["rule"] for finding in ran.json}
    assert found == PITFALLS[sample.relative_to(ROOT).as_posix()]


@each_sample
def test_its_files_are_there(sample: Path) -> None:
    assert tomllib.loads((sample / "sample.toml").read_text(encoding="utf-8"))
    tree = ast.parse((sample / "reference.py").read_text(encoding="utf-8"))
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["reference"]


@each_sample
def test_its_problem_is_found(sample: Path) -> None:
    program = analyze(read_source(sample / "kernel.cu"), read_include)
    (kernel,) = program.defined_kernels
    problem = find_problem(program, kernel)
    assert not isinstance(problem, Missing), str(problem)
    assert problem.reference == sample / "reference.py"


@each_sample
@pytest.mark.upskill
def test_its_reference_writes_what_the_kernel_writes(sample: Path) -> None:
    import torch

    program = analyze(read_source(sample / "kernel.cu"), read_include)
    problem = find_problem(program, program.defined_kernels[0])
    assert not isinstance(problem, Missing)
    namespace = runpy.run_path(str(sample / "reference.py"))
    for shape in problem.check[1:4]:
        case = problem.case(shape)
        inputs = {array.name: torch.rand(case.counts[array.name]) for array in problem.arrays if array.role != "out"}
        outputs = namespace["reference"](**inputs, **case.scalars)
        written = {array.name: case.counts[array.name] for array in problem.arrays if array.role != "in"}
        assert {name: tensor.numel() for name, tensor in outputs.items()} == written
        assert all(tensor.dtype == torch.float32 and tensor.is_contiguous() for tensor in outputs.values())


@each_sample
@pytest.mark.nvcc
def test_it_compiles_without_a_warning(sample: Path) -> None:
    compiled = compile_cubin(read_source(sample / "kernel.cu"), flags=("-Werror", "all-warnings"))
    assert compiled.ok, compiled.reason
    assert len(compiled.kernels) == 1
