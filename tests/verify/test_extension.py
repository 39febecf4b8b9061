"""A torch extension without a GPU: its calls are planned, its build is described, and its kernels are emulated."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from extension_attacks import CHECKS, Check
from warpwright.missing import Missing
from warpwright.problems.extension.model import ExtensionProblem
from warpwright.problems.extension.problem import find_extension_problem
from warpwright.syntax.source import Source, read_source
from warpwright.toolchain.compilation import TorchBuild
from warpwright.toolchain.library_symbols import computing
from warpwright.verify.extension import Built, make_request, observe_extension
from warpwright.verify.report import Status
from warpwright.verify.torch_build import find_torch
from warpwright.verify.verify import verify

ROOT = Path(__file__).parents[2]
ATTACKS = ROOT / "tests" / "attacks" / "extension"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_every_attack_and_honest_candidate_has_a_call(check: Check) -> None:
    for source in (check.original, check.candidate):
        problem = find_extension_problem(source)
        assert isinstance(problem, ExtensionProblem), str(problem)
        built = Built(Path("extension.so"), ("_Z6smoothPfi",), frozenset())
        request = make_request(problem, built, built, timed=True, judge="baseline", rates={})
        known = [*problem.check, *problem.time]
        assert any(case["shape"] not in known for case in request["cases"]), "one size is drawn that nobody knows"
        assert request["cases"][0]["time"]
        assert all(case["arguments"] for case in request["cases"])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="not installed: torch")
def test_how_extensions_are_built_is_asked_of_torch() -> None:
    torch = find_torch()
    assert isinstance(torch, TorchBuild)
    assert any(flag.startswith("-std=c++") for flag in torch.flags)
    folders = [Path(flag.partition("=")[2]) for flag in torch.flags if flag.startswith("-isystem=")]
    assert any((folder / "torch" / "library.h").is_file() for folder in folders)
    assert any((folder / "Python.h").is_file() for folder in folders)
    assert {"-lc10", "-ltorch_python"} <= set(torch.libraries)


def test_a_python_without_torch_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPWRIGHT_GPU_PYTHON", str(tmp_path / "python"))
    assert isinstance(find_torch(), Missing)
    original = read_source(ATTACKS / "original.cu")
    report = verify(original, original, backend="emulator")
    assert report.status is Status.NOT_RUN
    assert report.badge() == "parsed, not compiled, not run: no torch here"


def test_another_signature_is_not_run() -> None:
    original = read_source(ATTACKS / "original.cu")
    other = Source(original.path, original.data.replace(b"forward(Tensor x, float scale)", b"forward(Tensor x)"))
    outcome = observe_extension(
        original,
        other,
        TorchBuild("", (), ()),
        arch="sm_90",
        flags=(),
        kernels=(frozenset(), frozenset()),
        rates={},
        goal="speed",
        progress=lambda text, share: None,
        is_cancelled=lambda: False,
    )
    assert outcome.observed.status is Status.WRONG
    assert "takes other parameters" in outcome.observed.reason


def test_what_computes_is_told_from_what_makes_tensors() -> None:
    plain = [
        "at::_ops::empty_like::call(at::Tensor const&)",
        "at::_ops::zeros::call()",
        "cudaLaunchKernel@libcudart.so",
    ]
    assert not computing(plain)
    assert computing(["at::_ops::softmax_int::call(at::Tensor const&)", "cudnnCreate"]) == {
        "at::softmax_int",
        "cudnnCreate",
    }
