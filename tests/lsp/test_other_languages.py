"""C++ and Python files beside the servers of these languages: what extensions do wrong is said, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.editor import Editor

OPS = """\
import torch

def scale(x):
    try:
        return torch.ops.mine.scale(x)
    except Exception:
        return x * 2
"""
BINDING = """\
#include <torch/extension.h>
bool on_gpu(torch::Tensor x) { return x.type().is_cuda(); }
"""


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("ops.py", OPS, ["silent-fallback"]),
        ("plain.py", "# y[i] = 2 * x[i]\nimport numpy\n", []),
        ("binding.cpp", BINDING, ["deprecated-tensor-api"]),
        ("plain.cpp", "#include <vector>\nvoid f(float* h, float* d) { for (;;) cudaMemcpy(h, d, 4, k); }\n", []),
    ],
)
def test_only_files_of_an_extension_have_findings(
    any_editor: Editor, tmp_path: Path, name: str, text: str, rules: list[str]
) -> None:
    page = any_editor.open(name, text, (tmp_path / name).as_uri())
    assert [each.code for each in page.diagnostics()] == rules
    if not rules:
        assert page.actions(page.range(text[0])) == []
