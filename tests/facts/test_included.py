"""Files that the compiler is told to read before the text (`-include`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from warpwright.editor.analysis import analyse
from warpwright.editor.includes import open_first
from warpwright.editor.settings import Settings
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Basis
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source, read_include, read_source

HEADER = """#pragma once
#define STRIDE 4
__device__ inline int place_of(int i) { return i * STRIDE; }
"""
TEXT = """__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[place_of(i)];
}
void run(const float* in, float* out, int n) { k<<<(n + 127) / 128, 128>>>(in, out, n); }
"""


@pytest.mark.parametrize("name", ["forced.h", "headers/forced.h"], ids=["beside", "in-a-folder"])
def test_the_analysis_reads_them(name: str, tmp_path: Path) -> None:
    header = tmp_path / name
    header.parent.mkdir(exist_ok=True)
    header.write_text(HEADER)
    source = tmp_path / "a.cu"
    source.write_text(TEXT)
    flags = parse_flags(["nvcc", "-include", name, "-c", "a.cu"], tmp_path)
    program = analyze(read_source(source), read_include, Assumptions().compiled_with(flags))
    load = next(a for a in program.defined_kernels[0].accesses if a.expression.startswith("in["))
    assert (load.sectors_per_request, load.basis) == (16.0, Basis.EXACT)
    assert [Path(path).name for path in program.sources] == ["a.cu", "forced.h"]
    problem = find_problem(program, program.defined_kernels[0])
    assert isinstance(problem, Problem)
    assert {a.name: a.extent for a in problem.arrays}["in"] == "4 * n - 3"


def test_the_editor_takes_them_from_compile_commands_and_as_they_are_open(tmp_path: Path) -> None:
    (tmp_path / "forced.h").write_text(HEADER)
    (tmp_path / "a.cu").write_text(TEXT)
    command = {"directory": str(tmp_path), "file": "a.cu", "arguments": ["nvcc", "-include", "forced.h", "-c", "a.cu"]}
    (tmp_path / "compile_commands.json").write_text(json.dumps([command]))
    unsaved = Source(str(tmp_path / "forced.h"), HEADER.replace("STRIDE 4", "STRIDE 8").encode())
    for opened, sectors in (({}, 16.0), ({unsaved.path: unsaved}, 32.0)):
        found = analyse(read_source(tmp_path / "a.cu"), open_first(opened), Settings())
        load = next(a for a in found.program.defined_kernels[0].accesses if a.expression.startswith("in["))
        assert load.sectors_per_request == sectors
