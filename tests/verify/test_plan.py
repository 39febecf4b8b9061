"""Sizes that nobody knows beforehand, and sizes of nothing; launches that CUDA refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.syntax.source import Source
from warpwright.verify.plan import CandidateLaunchError, Side, empty_shape, gpu_lock, hidden_shape, make_request
from warpwright.verify.thresholds import MOST_SHAPES, threshold_shapes, with_thresholds

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


def test_each_gpu_of_a_machine_has_a_lock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(visible: str) -> str:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        return gpu_lock()

    assert lock("1") == lock("1,0") != lock("0") == lock("")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpu_lock() == lock("0")
    assert "/" not in Path(lock("GPU-../../x")).name


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


def test_sizes_lie_around_what_the_candidate_alone_compares_with_first() -> None:
    original = replace(problem_of(), compared=(700, 123456))
    candidate = replace(original, compared=(700, 5000, 0.5, 1 << 24))
    shapes = threshold_shapes(with_thresholds(original, candidate))
    assert [shape["n"] for shape in shapes] == [5001, 5000, 701, 700]
    assert len(shapes) == MOST_SHAPES
    of_16 = problem_of("// warpwright: check n=16\n// warpwright: check n=48\n// warpwright: check n=1040\n")
    assert [shape["n"] for shape in threshold_shapes(replace(of_16, compared=(5000,)))] == [5008]


def side_of(folder: Path, launch: str, before: str = "", static_bytes: int = 0) -> Side:
    """A kernel as if it were compiled to something that takes `static_bytes` of shared memory."""
    text = ONE.format(more="", grid=launch).replace("{ copy<<<", f"{{ {before} copy<<<").replace(", 64>>>", ">>>")
    program = analyze(Source("/nowhere/a.cu", text.encode()))
    problem = find_problem(program, program.defined_kernels[0])
    assert not isinstance(problem, Missing), problem
    cubin = folder / "a.cubin"
    cubin.write_bytes(b"machine code")
    return Side(cubin, KernelResources("copy", "copy", 32, 0, 0, 0, static_bytes, 0, 0, "sm_86"), problem)


ASKS = "cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, {});"


@pytest.mark.parametrize(
    ("launch", "before", "static_bytes", "words"),
    [
        ("8, 64, 49152", "", 0, ""),
        ("8, 64, 49152", "", 4, "it takes 49,156 bytes of shared memory, and the host code asks for no more than"),
        ("8, 64, 60000", "", 0, "it takes 60,000 bytes of shared memory, and the host code asks for no more than"),
        ("8, 64, 60000", ASKS.format(60000), 4, ""),
        ("8, 64, 60000", ASKS.format(59999), 4, "the host code asks for only 59,999 of dynamic"),
        ("8, 64, 60000", ASKS.format("most_of(device)"), 4, ""),
        (
            "8, 64, 102400",
            ASKS.format(102400),
            0,
            "102,400 bytes of shared memory are more than the 101,376 of a block",
        ),
    ],
)
def test_shared_memory_that_a_launch_does_not_get(
    launch: str, before: str, static_bytes: int, words: str, tmp_path: Path
) -> None:
    modest, greedy = side_of(tmp_path, "8, 64"), side_of(tmp_path, launch, before, static_bytes)
    if words:
        with pytest.raises(CandidateLaunchError, match=words):
            make_request(modest, greedy, seed=1, judge="baseline", timed=False)
    else:
        make_request(modest, greedy, seed=1, judge="baseline", timed=False)


def test_a_launch_that_is_refused_on_both_sides_is_said_and_run(tmp_path: Path) -> None:
    greedy = side_of(tmp_path, "8, 64, 60000")
    request = make_request(greedy, greedy, seed=1, judge="baseline", timed=False)
    assert any("CUDA refuses the original's own launch: it takes 60,000" in note for note in request["notes"])
