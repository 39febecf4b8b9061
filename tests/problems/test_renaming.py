"""The problem of a kernel whose parameters have other names, in the names of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.problems.renaming import in_names_of, renamed_parameters
from warpwright.syntax.source import Source

TEXT = """struct Size { int rows; int columns; };
__global__ void gather(const float* in, const int* at, float* out, int n, Size size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i < size.rows * size.columns) out[i] = in[at[i]];
}
void run(const float* a, const int* b, float* c, int n, int rows, int columns) {
    Size size = {rows, columns};
    gather<<<(n + 63) / 64, 64>>>(a, b, c, n, size);
}
"""
OTHERS = (
    ("float* in, const", "float* source, const"),
    ("= in[at[i]]", "= source[index[i]]"),
    ("int* at,", "int* index,"),
    ("int n, Size size) {", "int count, Size size) {"),
    ("i < n &&", "i < count &&"),
)
EXTENT = (("Size size) {", "Size extent) {"), ("size.rows * size.columns", "extent.rows * extent.columns"))
SAID = """[kernels.gather]
grid = ["(n + 127) / 128"]
block = [128]
shape = { n = 500, size_rows = 30, size_columns = 20 }
check = [{ n = 33, size_rows = 3, size_columns = 20 }]
[kernels.gather.arguments]
in = { extent = "2 * n" }
at = { values = "index(2 * n)" }
"""


def changed(*edits: tuple[str, str]) -> str:
    text = TEXT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def problems(folder: Path, candidate: str) -> tuple[Problem, Problem]:
    """Of the original, and of the candidate in its names."""
    found: list[Problem] = []
    programs = [analyze(Source(str(folder / "a.cu"), text.encode())) for text in (TEXT, candidate)]
    first = programs[0].defined_kernels[0]
    for program in programs:
        kernel = program.defined_kernels[0]
        problem = find_problem(program, kernel, renamed_parameters(first, kernel))
        assert not isinstance(problem, Missing), problem
        found.append(in_names_of(found[0], problem) if found else problem)
    return found[0], found[1]


def test_other_names_are_the_same_problem(tmp_path: Path) -> None:
    original, candidate = problems(tmp_path, changed(*OTHERS, *EXTENT))
    assert replace(candidate, notes=()) == replace(original, notes=())


def test_what_is_said_under_the_old_names_holds(tmp_path: Path) -> None:
    (tmp_path / "sample.toml").write_text(SAID)
    original, candidate = problems(tmp_path, changed(*OTHERS))
    assert candidate == original
    assert original.case({"n": 500, "size_rows": 30, "size_columns": 20}).limits == {"at": 1000}


@pytest.mark.parametrize(
    "edits",
    [
        [("float* in, const int* at, float* out", "float* out, const int* at, float* in")],
        [*OTHERS, ("const float* source", "const double* source")],
        [*OTHERS, ("int count,", "long count,")],
        [*OTHERS, ("{ int rows; int columns; }", "{ int columns; long rows; }")],
        [*OTHERS, ("Size size) {", "Size size, int more) {"), ("n, size);", "n, size, 1);")],
    ],
    ids=["another-order", "another-element", "another-number", "another-struct", "one-more"],
)
def test_other_parameters_keep_their_names(edits: list[tuple[str, str]], tmp_path: Path) -> None:
    original, candidate = problems(tmp_path, changed(*edits))
    assert [a.name for a in candidate.arguments] != [a.name for a in original.arguments]
