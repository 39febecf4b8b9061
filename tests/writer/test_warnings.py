"""Compilers have nothing to say of what is written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from warpwright.formulas.resolve import formula_of
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.writer.write import file_text, plain, written

ATTENTION = """q: f16[B, H, T, 64]  k: f16[B, H, T, 64]  v: f16[B, H, T, 64]
lse[b, h, i] = logsumexp[j] s[b, h, i, j]
o[b, h, i, d] = sum[j] exp(s[b, h, i, j] - lse[b, h, i]) * v[b, h, j, d]
  where s[b, h, i, j] = {score} if j <= i else -inf"""
PRODUCT = "scale * sum[d] q[b, h, i, d] * k[b, h, j, d]"
FORMULAS = (
    ATTENTION.format(score=f"({PRODUCT})"),
    ATTENTION.format(score=f"({PRODUCT}) - slope[h] * (i - j)"),
    ATTENTION.format(score=f"(30 * tanh({PRODUCT}))"),
    "x: f64 y[r, c] = x[r, c] - logsumexp[k] x[r, k]",
    "x: f64 y[i, j] = max[a < 3, b < 3] x[i + a - 1, j + b - 1; -inf]",
    "y[c] = mean[r] x[r, c]",
    "y[r, i] = sum[j <= i] x[r, j]",
    "y[r] = sum[first[r] <= e < first[r + 1]] values[e] * x[col[e]]",
    "bins: u8  h: i32[256]  h[bins[i]] = sum[i] 1",
    "A: bf16  B: bf16  C: bf16  C[i, j] = gelu(bias[j] + sum[k] A[i, k] * B[k, j])",
    "y[i] = z[x[i] // n; clamp] + uniform(seed, i) if m[i] and i > 3 or not m[i] else sum[j] w[j]",
)


@pytest.mark.nvcc
def test_what_is_written_compiles_without_a_warning(tmp_path: Path) -> None:
    found = find_toolchain()
    assert isinstance(found, Toolchain)
    formulas = [formula_of(text) for text in FORMULAS]
    codes = [make(each, f"{make.__name__}_{n}") for make in (plain, written) for n, each in enumerate(formulas)]
    (tmp_path / "written.cu").write_text(file_text(*codes), encoding="utf-8")
    command = [str(found.nvcc), "-std=c++17", "-Werror", "all-warnings", "-Xcompiler=-Wall,-Wextra", "-Xcicc", "-O0"]
    made = subprocess.run(
        [*command, "-gencode", "arch=compute_90,code=compute_90", "-c", "written.cu"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
