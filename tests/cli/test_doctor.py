"""`warpwright doctor`: what it found, and what to do about what it did not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command


def test_every_part_is_named(tmp_path: Path) -> None:
    ran = run_command("doctor", "--format", "json", cwd=tmp_path)
    assert ran.status == 0
    parts = {part["name"]: part for part in ran.json}
    assert {
        "warpwright",
        "analysis",
        "compiler",
        "sandbox",
        "emulator",
        "GPU",
        "profiler",
        "model runtime",
        "model",
        "editor",
    } <= parts.keys()
    assert "limits" in parts["sandbox"]["what"]
    assert parts["warpwright"]["found"] and parts["analysis"]["found"]
    assert all(part["found"] or part["advice"] for part in ran.json)


def test_a_bare_machine_gets_advice(tmp_path: Path) -> None:
    """Nothing on PATH, and a compiler named that is not there."""
    ran = run_command("doctor", cwd=tmp_path, env={"PATH": "", "WARPWRIGHT_NVCC": "/nowhere/nvcc"})
    assert ran.status == 0
    compiler = ran.stdout[ran.stdout.index("compiler") :]
    assert compiler.splitlines()[0].endswith("WARPWRIGHT_NVCC names /nowhere/nvcc, which does not exist.")
    assert "pip install 'warpwright[cuda]'" in compiler.splitlines()[2]
    assert "nvidia-smi is not on PATH" in ran.stdout
    assert "docs/editors.md" in ran.stdout


@pytest.mark.nvcc
def test_the_compiler_is_named_with_its_version(tmp_path: Path) -> None:
    parts = {part["name"]: part for part in run_command("doctor", "--format", "json", cwd=tmp_path).json}
    assert parts["compiler"]["found"]
    assert parts["compiler"]["what"].startswith("nvcc 1")
