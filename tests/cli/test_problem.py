"""`warpwright problem`: what it prints says how to run the kernel, and reads back as what it was printed from."""

from __future__ import annotations

from pathlib import Path

from cli.kernels import CONFLICT
from support.command import run_command


def test_what_is_printed_can_be_put_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    first = run_command("problem", "a.cu", cwd=tmp_path)
    assert (first.status, first.stderr) == (0, "")
    assert "[kernels.transpose.arguments]" in first.stdout
    (tmp_path / "sample.toml").write_text(first.stdout, encoding="utf-8")
    again = run_command("problem", "a.cu", cwd=tmp_path)
    assert again.status == 0
    assert "# sample.toml" in again.stdout


def test_what_is_assumed_is_shown(tmp_path: Path) -> None:
    text = (
        "__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 0; }\n"
    )
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    ran = run_command("problem", "a.cu", cwd=tmp_path)
    assert ran.status == 0
    assert ran.stdout.splitlines()[:2] == [
        "# assumed: no launch of it is found; blocks of 256 threads were taken",
        "# assumed: no launch of it is found; as many blocks as its guards ask for were taken",
    ]
    assert 'a = { type = "float", extent = "n", role = "out", values = "any" }  # inferred' in ran.stdout
    assert "profile = { n = 50021 }" in ran.stdout


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("__global__ void k(float** a) { a[threadIdx.x][0] = 0; }\n", encoding="utf-8")
    ran = run_command("problem", "a.cu", cwd=tmp_path)
    assert (ran.status, ran.stdout) == (2, "")
    assert "`a` holds addresses" in ran.stderr


def test_a_file_that_another_includes_is_read_as_a_part_of_that(tmp_path: Path) -> None:
    (tmp_path / "part.cu").write_text(
        "__global__ void fill(real* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 0; }\n"
    )
    (tmp_path / "main.cu").write_text(
        '#include <cstdio>\nusing real = double;\n#include "part.cu"\n__global__ void other(real* a) { a[0] = 1; }\n'
        "int main() { real* d; cudaMalloc(&d, 96 * sizeof(real)); fill<<<1, 96>>>(d, 96); }\n"
    )
    ran = run_command("problem", "part.cu", cwd=tmp_path)
    assert (ran.status, ran.stderr) == (0, "")
    assert "[kernels.fill.arguments]" in ran.stdout
    assert 'a = { type = "double"' in ran.stdout
    assert '# block = ["96", "1", "1"]' in ran.stdout
    assert "no kernel 'other'" in run_command("problem", "part.cu", "--kernel", "other", cwd=tmp_path).stderr
