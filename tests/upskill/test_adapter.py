"""From examples to an adapter that llama.cpp runs as torch does, on a tiny random Gemma 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.upskill import ran, refused, settings

pytestmark = [pytest.mark.upskill, pytest.mark.llm]

QUICK = settings(max_steps=3, rank=4, alpha=8, learning_rate=0.01, max_tokens=4096, mix="{kernel=1, plan=1}")


def report(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return read


def test_the_tiny_model_is_the_same_again(tiny: Path, tmp_path: Path) -> None:
    ran("tiny", tmp_path / "again.gguf")
    assert (tmp_path / "again.gguf").read_bytes() == tiny.read_bytes()


@pytest.mark.nvcc
def test_training_lowers_the_loss(tiny: Path, collected: Path, tmp_path: Path) -> None:
    ran("train", collected, "--model", tiny, "--out", tmp_path, *QUICK)
    said = report(tmp_path)
    assert said["steps"] == 3
    assert sum(said["rows"].values()) > 5
    assert said["loss"][-1] < said["loss"][0]


def test_learns_by_heart(learned: Path) -> None:
    assert report(learned)["loss"][-1] < 0.7 < report(learned)["loss"][0]


def test_llama_cpp_computes_with_the_export_what_torch_does(
    tiny: Path, lesson: Path, learned: Path, tmp_path: Path
) -> None:
    out = tmp_path / "adapter.gguf"
    said = ran("export", learned, "--model", tiny, "--out", out, "--type", "q8_0", "--check", lesson).stdout
    agreement = json.loads(said.strip().splitlines()[-1])
    assert agreement["positions"] > 50
    assert agreement["same_choice"] == agreement["positions"]
    assert agreement["changed"] > agreement["positions"] / 2
    assert agreement["largest_difference"] < agreement["largest_change"] / 10


def test_an_adapter_of_another_model_is_refused(tiny: Path, lesson: Path, learned: Path, tmp_path: Path) -> None:
    """The check runs the adapter on the model it is for; the embedded default has other widths than the tiny one."""
    said = refused("export", learned, "--out", tmp_path / "adapter.gguf", "--check", lesson)
    assert "adapter" in said
