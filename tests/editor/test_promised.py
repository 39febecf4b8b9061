"""What `check` announces is what `fix` can deliver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from warpwright.editor.analysis import compiler_options
from warpwright.editor.promised import answers, promised
from warpwright.editor.settings import Settings
from warpwright.facts.analyze import analyze
from warpwright.rewrites.base import Declined
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.included import folders_found

COLUMN = """\
__global__ void turn(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * n + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * n + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void run(const float *in, float *out, int n) {
    turn<<<1, dim3(32, 32)>>>(in, out, n);
    if (cudaGetLastError() != cudaSuccess) return;
}
"""


def fixes(path: Path, text: str) -> dict[str, list[str]]:
    path.write_text(text, encoding="utf-8")
    program = analyze(read_source(path), read_include)
    return {each.rule: [fix.rewrite for fix in each.fixes] for each in promised(program, run_rules(program))}


def test_a_rewrite_that_applies_is_announced(tmp_path: Path) -> None:
    assert fixes(tmp_path / "a.cu", COLUMN)["bank-conflict"] == ["pad-shared-array", "swizzle-shared-array"]


def test_one_that_declines_is_not(tmp_path: Path) -> None:
    """Both see a call that is handed the array whole, whose layout it may rely on."""
    handed = COLUMN.replace("    __syncthreads();", "    __syncthreads();\n    sort(&tile[0][0], 1024);")
    assert fixes(tmp_path / "a.cu", "__device__ void sort(float *, int);\n" + handed)["bank-conflict"] == []


def test_nothing_is_announced_that_could_not_be_compiled(tmp_path: Path) -> None:
    assert fixes(tmp_path / "a.cu", '#include "gone.h"\n' + COLUMN)["bank-conflict"] == []
    (tmp_path / "gone.h").write_text("", encoding="utf-8")
    assert fixes(tmp_path / "a.cu", '#include "gone.h"\n' + COLUMN)["bank-conflict"] != []


def test_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('#include "gone.h"\n' + COLUMN, encoding="utf-8")
    program = analyze(read_source(tmp_path / "a.cu"), read_include)
    (finding,) = (each for each in run_rules(program) if each.rule == "bank-conflict")
    said = answers(program)(finding, finding.fixes[0])
    assert isinstance(said, Declined) and said.reason.endswith('a.cu:1 ("gone.h") is not found, so nothing compiles.')


def test_nvcc_is_told_where_the_analysis_found_a_header(tmp_path: Path) -> None:
    """A build file would name the folder; there is none here."""
    for name, text in (("include/sizes.h", '#include "more/n.h"\n'), ("include/more/n.h", "#define N 32\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = tmp_path / "src" / "a.cu"
    (tmp_path / ".git").mkdir()
    path.parent.mkdir()
    path.write_text('#include <cstdio>\n#include "sizes.h"\n', encoding="utf-8")
    assert folders_found(str(path), ()) == (str(tmp_path / "include"),)
    assert folders_found(str(path), (str(tmp_path / "include"),)) == ()
    assert compiler_options(str(path), Settings()) == (f"-I{tmp_path / 'include'}",)


def test_a_shape_of_the_block_that_another_file_gives_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    kernel, host = COLUMN[: COLUMN.index("void run")], COLUMN[COLUMN.index("void run") :]
    (tmp_path / "main.cu").write_text("__global__ void turn(const float *, float *, int);\n" + host, encoding="utf-8")
    assert fixes(tmp_path / "kernels.cu", kernel)["bank-conflict"] == []


@pytest.mark.nvcc
def test_a_header_that_nvcc_lacks_is_no_case_for_a_fix(tmp_path: Path) -> None:
    assert fixes(tmp_path / "a.cu", "#include <gone.h>\n" + COLUMN)["bank-conflict"] == []
    assert fixes(tmp_path / "a.cu", "#include <vector>\n#include <stdint.h>\n" + COLUMN)["bank-conflict"] != []


def test_what_gains_next_to_nothing_is_not_announced(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    path.write_text(COLUMN, encoding="utf-8")
    program = analyze(read_source(path), read_include)
    (finding,) = (each for each in run_rules(program) if each.rule == "bank-conflict")
    assert not isinstance(answers(program)(finding, finding.fixes[0]), Declined)
    tiny = replace(finding, gain=0.001)
    said = answers(program)(tiny, finding.fixes[0])
    assert isinstance(said, Declined) and said.reason == "It is worth less than 5% of the kernel's time."


@pytest.mark.nvcc
def test_a_library_that_is_not_there_is_no_case_for_a_fix(tmp_path: Path) -> None:
    assert fixes(tmp_path / "a.cu", "#include <nowhere/gone.h>\n" + COLUMN)["bank-conflict"] == []
    assert fixes(tmp_path / "a.cu", "#include <cub/cub.cuh>\n#include <sys/time.h>\n" + COLUMN)["bank-conflict"] != []
