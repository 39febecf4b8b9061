"""Base and base with adapter are asked the same held-out questions through the server's engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.upskill import ran, refused
from warpwright_upskill.examples import read_examples

pytestmark = [pytest.mark.upskill, pytest.mark.llm, pytest.mark.nvcc]


def test_counts_what_is_right(tiny: Path, adapter: Path, lesson: Path, tmp_path: Path) -> None:
    """Asked for its own lesson, the taught model gets it right, and the random one does not."""
    out = tmp_path / "evaluation.json"
    shown = ran("evaluate", lesson, "--model", tiny, "--adapter", adapter, "--split", "train", "--out", out).stdout
    assert "base + adapter" in shown
    said = json.loads(out.read_text(encoding="utf-8"))
    base, taught = said["results"]["base"], said["results"]["base + adapter"]
    assert (base["kernels"], base["kernels_compile"]) == (1, 0)
    assert (taught["kernels"], taught["kernels_shown"], taught["kernels_compile"]) == (1, 1, 1)
    assert said["hardware"] and said["versions"]["llama-cpp-python"] and len(said["adapter_sha256"]) == 64
    assert str(tmp_path) not in said["command"]


def test_asks_about_plans_of_held_out_kernels(tiny: Path, adapter: Path, collected: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation.json"
    ran("evaluate", collected, "--model", tiny, "--adapter", adapter, "--limit", "2", "--out", out)
    said = json.loads(out.read_text(encoding="utf-8"))
    for name, result in said["results"].items():
        assert result["plans"] + result["kernels"] == 2, name
        assert result["plans_right"] <= result["plans_valid"] <= result["plans"]
    held = {e.id for e in read_examples(collected) if e.split == "held-out"}
    answers = said["answers"]["base"]
    assert {a["id"] for a in [*answers["plans"], *answers["kernels"]]} <= held


def test_asks_nothing_without_an_adapter(tiny: Path, lesson: Path, tmp_path: Path) -> None:
    said = refused("evaluate", lesson, "--model", tiny, "--adapter", tmp_path / "none.gguf", "--split", "train")
    assert "`export` writes it" in said
    assert "no held-out example" in refused("evaluate", lesson, "--model", tiny, "--adapter", tmp_path / "none.gguf")
