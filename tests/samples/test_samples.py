"""The sample kernels: each compiles, has a problem and a reference, and shows the pitfall that it was written for."""

from __future__ import annotations

import ast
import runpy
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.command import run_command
from support.cuda import together
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Case, Problem
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, read_include, read_source
from warpwright.toolchain.compile import compile_cubin

ROOT = Path(__file__).resolve().parents[2] / "csrc_samples"
SAMPLES = sorted(path.parent for path in ROOT.glob("*/*/kernel.cu"))
NAMES = [path.relative_to(ROOT).as_posix() for path in SAMPLES]

# What each one is there to show.
PITFALLS = {
    "attention/attention_output": {"redundant-uniform-load"},
    "attention/causal_scores": {"uncoalesced-access"},
    "attention/rotary_embedding": {"double-precision-literal", "narrow-access"},
    "attention/silu_gate": {"missing-restrict", "uncoalesced-access"},
    "compute/black_scholes": {"double-precision-literal"},
    "compute/gaussian_density": {"double-precision-literal", "redundant-uniform-load"},
    "compute/nbody_forces": {"pow-small-exponent", "redundant-uniform-load"},
    "compute/polynomial_powf": set(),
    "diffusion/ddim_step": {"double-precision-literal"},
    "diffusion/group_norm": {"bank-conflict", "division-in-loop", "missing-restrict"},
    "diffusion/guided_euler": {"missing-restrict", "uncoalesced-access"},
    "diffusion/upsample_nearest": set(),
    "elementwise/channel_bias": set(),
    "elementwise/complex_multiply": {"divergent-branch"},
    "elementwise/dequantize_unchecked": {"unchecked-launch"},
    "elementwise/gelu_pow": {"pow-small-exponent"},
    "elementwise/leaky_relu_odd_block": {"partial-warp-block"},
    "elementwise/saxpy": set(),
    "elementwise/scale_unchecked": {"unchecked-launch"},
    "elementwise/sigmoid_double": {"double-precision-literal"},
    "elementwise/square_through_shared": set(),
    "gathers/embedding_lookup": {"missing-restrict", "uncoalesced-access"},
    "gathers/scatter_add": {"loop-invariant-load", "uncoalesced-access"},
    "gathers/spmv_ell": {"uncoalesced-access"},
    "histograms/count_shared": {"serial-section"},
    "histograms/private_bins": set(),
    "histograms/weighted_histogram": set(),
    "matrix/batched_small": {"uncoalesced-access"},
    "matrix/matmul_a_bt": {"redundant-uniform-load", "uncoalesced-access"},
    "matrix/matmul_at_b": {"uncoalesced-access"},
    "matrix/matmul_naive": set(),
    "matrix/matmul_swapped": {"uncoalesced-access"},
    "matrix/matmul_tiled_conflict": {"bank-conflict"},
    "matrix/matvec_rows": {"redundant-uniform-load", "uncoalesced-access"},
    "matrix/outer_product_update": {"loop-invariant-load"},
    "memory/copy_column": {"uncoalesced-access"},
    "memory/nchw_to_nhwc": {"uncoalesced-access"},
    "memory/particle_step": set(),
    "memory/reverse_shared_stride": {"uncoalesced-access"},
    "memory/scale_chunks": {"missing-restrict", "uncoalesced-access"},
    "memory/split_rgb": set(),
    "memory/transpose_naive": {"uncoalesced-access"},
    "memory/transpose_tiled": {"bank-conflict"},
    "mixed/adam_update": {"double-precision-literal", "missing-restrict"},
    "mixed/bilinear_resize": {"uncoalesced-access"},
    "mixed/nearest_centroid": {"pow-small-exponent", "uncoalesced-access"},
    "normalisations/batch_norm_statistics": set(),
    "normalisations/divide_by_norm": {"loop-invariant-load"},
    "normalisations/layer_norm_rows": {"missing-restrict", "redundant-uniform-load", "uncoalesced-access"},
    "normalisations/rms_norm_block": {"missing-restrict", "serial-section"},
    "normalisations/softmax_block": {"missing-restrict"},
    "normalisations/softmax_rows": {"missing-restrict", "uncoalesced-access"},
    "reductions/count_above": set(),
    "reductions/dot_thread_zero": {"serial-section"},
    "reductions/mean_partial_warps": {"partial-warp-block", "serial-section"},
    "reductions/norm_chunks": {"contended-atomic", "uncoalesced-access"},
    "reductions/reduce_interleaved": {"divergent-branch"},
    "reductions/row_max_modulo": {"divergent-branch"},
    "reductions/row_sum": {"uncoalesced-access"},
    "reductions/sum_one_address": {"contended-atomic"},
    "scans/block_scan": set(),
    "scans/offsets_thread_zero": {"serial-section"},
    "scans/row_cumsum": {"missing-restrict", "uncoalesced-access"},
    "stencils/blur_shared_oversized": {"oversized-shared-array"},
    "stencils/convolution_5x5": set(),
    "stencils/heat_2d": set(),
    "stencils/jacobi_3d": {"missing-restrict", "uncoalesced-access"},
    "stencils/moving_average": set(),
    "stencils/sobel_columns": {"uncoalesced-access"},
    "stencils/stencil_1d": {"barrier-in-divergent-branch"},
}

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


def test_every_sample_says_what_it_shows() -> None:
    assert set(NAMES) == PITFALLS.keys()


@cache
def program(sample: Path) -> Program:
    return analyze(read_source(sample / "kernel.cu"), read_include)


@pytest.mark.parametrize("name", NAMES)
def test_the_pitfall_is_found(name: str) -> None:
    assert {finding.rule for finding in run_rules(program(ROOT / name))} == PITFALLS[name]


@pytest.mark.slow
def test_the_command_reports_them() -> None:
    rules: dict[str, set[str]] = {name: set() for name in NAMES}
    for finding in run_command("check", ".", "--format", "json", cwd=ROOT).json:
        rules[Path(finding["file"]).parent.as_posix()].add(finding["rule"])
    assert rules == PITFALLS


@each_sample
def test_its_files_are_there(sample: Path) -> None:
    assert tomllib.loads((sample / "sample.toml").read_text(encoding="utf-8"))
    tree = ast.parse((sample / "reference.py").read_text(encoding="utf-8"))
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["reference"]


@each_sample
def test_its_problem_is_found(sample: Path) -> None:
    (kernel,) = program(sample).defined_kernels
    problem = find_problem(program(sample), kernel)
    assert not isinstance(problem, Missing), str(problem)
    assert problem.reference == sample / "reference.py"


def inputs(problem: Problem, case: Case) -> dict[str, Any]:
    """A tensor for each array that the kernel reads: numbers from 0 to 1, or whole numbers where it takes those."""
    import torch

    tensors: dict[str, Any] = {}
    for array in problem.arrays:
        count = case.counts[array.name]
        if array.role == "out":
            continue
        if array.type != "int":
            tensors[array.name] = torch.rand(count)
            continue
        limit = case.limits.get(array.name, 7)
        tensors[array.name] = torch.randint(limit, (count,), dtype=torch.int32)
    return tensors


@each_sample
@pytest.mark.upskill
def test_its_reference_writes_what_the_kernel_writes(sample: Path) -> None:
    import torch

    problem = find_problem(program(sample), program(sample).defined_kernels[0])
    assert not isinstance(problem, Missing)
    namespace = runpy.run_path(str(sample / "reference.py"))
    types = {array.name: torch.int32 if array.type == "int" else torch.float32 for array in problem.arrays}
    for shape in problem.check[1:4]:
        case = problem.case(shape)
        outputs = namespace["reference"](**inputs(problem, case), **case.scalars)
        written = {array.name: case.counts[array.name] for array in problem.arrays if array.role != "in"}
        assert {name: tensor.numel() for name, tensor in outputs.items()} == written
        assert all(tensor.dtype == types[name] and tensor.is_contiguous() for name, tensor in outputs.items())


@pytest.mark.nvcc
def test_they_compile_without_a_warning() -> None:
    """All in one compilation, each in a namespace of its own."""
    texts = {name: (ROOT / name / "kernel.cu").read_text(encoding="utf-8") for name in NAMES}
    compiled = compile_cubin(Source("samples.cu", together(texts).encode()), flags=("-Werror", "all-warnings"))
    assert compiled.ok, compiled.reason
    assert len(compiled.kernels) == len(NAMES)
