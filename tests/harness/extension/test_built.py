"""An extension is built by nvcc for this machine's torch, and called in a process of its own, on the CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import TorchBuild
from warpwright.toolchain.compile import EXTENSION_MODULE, compile_extension
from warpwright.toolchain.library_symbols import library_calls
from warpwright.verify.torch_build import find_torch

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

pytestmark = pytest.mark.nvcc

TEXT = """
#include <torch/library.h>
at::Tensor scaled(const at::Tensor& x, double scale) {
  at::Tensor y = x.clone();
  for (int64_t i = 0; i < x.numel(); i++) y.data_ptr<float>()[i] = scale * x.data_ptr<float>()[i];
  return y;
}
TORCH_LIBRARY(built, m) { m.def("scaled(Tensor x, float scale) -> Tensor", &scaled); }
"""


@pytest.mark.slow
def test_an_operator_is_built_and_called(tmp_path: Path) -> None:
    from warpwright_harness.extension.run import judge_extension

    torch = find_torch()
    assert isinstance(torch, TorchBuild)
    built = compile_extension(Source(str(tmp_path / "a.cu"), TEXT.encode()), torch)
    assert built.ok, built.reason
    assert library_calls(built.library or Path(), lambda: False) == frozenset()
    side = {"library": str(built.library), "kernels": []}
    x = {"kind": "tensor", "name": "x", "scalar": "float32", "sizes": [100], "limit": None, "keyword": False}
    scale = {"kind": "plain", "name": "scale", "value": 1.5, "keyword": False}
    request = {
        "extension": {"module": EXTENSION_MODULE, "namespace": "built", "name": "scaled"},
        "baseline": side,
        "candidate": side,
        "cases": [
            {
                "shape": {},
                "arguments": [x, scale],
                "distributions": ["normal", "integers"],
                "check": True,
                "time": False,
            }
        ],
        "judge": "baseline",
        "rates": {},
        "lock": str(tmp_path / "lock"),
        "seconds_per_shape": 0.1,
    }
    events: list[dict[str, Any]] = []
    judge_extension(request, None, events.append, device="cpu")
    assert [event["ok"] for event in events if event["event"] == "case"] == [True, True], events


def test_what_does_not_compile_is_said(tmp_path: Path) -> None:
    built = compile_extension(Source(str(tmp_path / "a.cu"), b"int x = ;\n"), TorchBuild("0", (), ()))
    assert not built.ok
    assert "a.cu:1" in built.reason
    assert built.library is None
