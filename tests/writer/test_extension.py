"""A formula as a PyTorch extension and as a header: what a compiler and torch say of the texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from warpwright.formulas.resolve import formula_of
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.writer.code import Code
from warpwright.writer.extension import NoExtensionError, binding_text, python_text, schema
from warpwright.writer.header import header_text
from warpwright.writer.write import written

SOFTMAX = (
    "x: {kind}[R, C] w: f32[C] y: {kind}[R, C] y[r, c] = exp(x[r, c] - m[r]) / s[r] * w[c] * scale "
    "where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])"
)
ADDED = "h[b[i]] += x[i] z[j] = sum[i] x[i] * v[i, j]"


def nvcc() -> str:
    found = find_toolchain()
    assert isinstance(found, Toolchain)
    return str(found.nvcc)


def softmax() -> list[Code]:
    return [written(formula_of(SOFTMAX.format(kind=kind)), f"softmax_{kind}") for kind in ("f32", "bf16")]


def code_of(text: str, name: str = "made") -> Code:
    return written(formula_of(text), name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y[r] = sum[c] x[r, c]", "made(Tensor x) -> Tensor"),
        ("x'[i] = x[i] * s", "made(Tensor(a!) x, float s) -> ()"),
        ("y[i] = x[i], z[i] = x[i] + 1", "made(Tensor x) -> (Tensor, Tensor)"),
        ("x: f32[R, C](ld, 1) y[r, c] = x[r, c]", "made(Tensor x, SymInt ld) -> Tensor"),
    ],
)
def test_the_schema_says_what_is_read_and_written(text: str, expected: str) -> None:
    assert schema(code_of(text)) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p: f32[N]{x, y} r[i] = p.x[i] + p.y[i]", "A tensor of PyTorch has no fields"),
        ("y: f32[N] y[i] = 1.0", "The formula reads no tensor"),
    ],
)
def test_what_torch_cannot_be_handed_is_refused(text: str, said: str) -> None:
    with pytest.raises(NoExtensionError, match=said):
        binding_text([code_of(text)], "mine")


def test_each_combination_of_types_has_a_launch() -> None:
    text = binding_text(softmax(), "mine")
    assert "if (x.scalar_type() == at::kFloat && w.scalar_type() == at::kFloat) {" in text
    assert "} else if (x.scalar_type() == at::kBFloat16 && w.scalar_type() == at::kFloat) {" in text
    assert 'm.def("softmax(Tensor x, Tensor w, float scale) -> Tensor");' in text


@pytest.mark.sampled(2)
@pytest.mark.nvcc
@pytest.mark.parametrize("which", ["softmax", "added"])
def test_a_compiler_takes_the_binding(which: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.cpp_extension import include_paths

    codes = softmax() if which == "softmax" else [code_of(ADDED)]
    (tmp_path / "binding.cpp").write_text(binding_text(codes, "mine"), encoding="utf-8")
    if not torch.version.cuda:  # a torch without CUDA lacks a header that its build writes
        generated = tmp_path / "c10/cuda/impl"
        generated.mkdir(parents=True)
        (generated / "cuda_cmake_macros.h").write_text("#pragma once\n", encoding="utf-8")
    includes = [f"-I{each}" for each in (tmp_path, *include_paths())]
    command = [nvcc(), "-std=c++20", "-Xcompiler=-fsyntax-only,-Wall,-Werror=unused-function", "-c", *includes]
    made = subprocess.run(
        [*command, str(tmp_path / "binding.cpp"), "-o", str(tmp_path / "binding.o")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr


def test_torch_accepts_the_fake_kernel(tmp_path: Path) -> None:
    """The module is imported in a process of its own; on the CPU the reference computes."""
    pytest.importorskip("torch")
    text = python_text(softmax(), "mine", "softmax.so")
    assert text.count("load_library") == 1
    loads = next(line for line in text.splitlines() if "load_library" in line)
    (tmp_path / "operator_module.py").write_text(text.replace(loads, ""), encoding="utf-8")
    (tmp_path / "check.py").write_text(CHECK, encoding="utf-8")
    definition = schema(softmax()[0]).replace("softmax_f32", "softmax", 1)
    made = subprocess.run(
        [sys.executable, "check.py", definition], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout.split() == ["opcheck", "refused", "refused"]


CHECK = """
import sys
import torch
torch.library.define("mine::softmax", sys.argv[1].partition("softmax")[2])
@torch.library.impl("mine::softmax", "CPU")
def _(x, w, scale):
    return (x.float().softmax(1) * w * scale).to(x.dtype)
import operator_module
for kind in (torch.float32, torch.bfloat16):
    torch.library.opcheck(torch.ops.mine.softmax.default, (torch.randn(3, 5).to(kind), torch.randn(5), 2.0))
print("opcheck")
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    for x, w in ((torch.empty(3, 5), torch.empty(4)), (torch.empty(3), torch.empty(3))):
        try:
            operator_module.softmax(x, w, 1.0)
        except RuntimeError:
            print("refused")
"""


@pytest.mark.sampled(2)
@pytest.mark.nvcc
@pytest.mark.parametrize("text", [ADDED, "y[c] = sum[r] x[r, c]"])
def test_a_header_may_be_included_twice(text: str, tmp_path: Path) -> None:
    (tmp_path / "summed.cuh").write_text(header_text(code_of(text, "summed")), encoding="utf-8")
    for name in ("one", "two"):
        include = '#include "summed.cuh"\n#include "summed.cuh"\n'
        (tmp_path / f"{name}.cu").write_text(f"{include}void* {name}() {{ return (void*)summed; }}\n", encoding="utf-8")
    command = [nvcc(), "-std=c++17", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-o", "both.so"]
    made = subprocess.run(
        [*command, "one.cu", "two.cu"], cwd=tmp_path, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
