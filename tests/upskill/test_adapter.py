"""From examples to an adapter that llama.cpp runs as torch does, on a tiny random Gemma 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.upskill import ran, refused
from warpwright_upskill.examples import read_examples
from warpwright_upskill.gemma import Tokens
from warpwright_upskill.train import Settings, tokenise, train

pytestmark = [pytest.mark.upskill, pytest.mark.llm]

QUICK = ("--max-steps", "3", "--rank", "4", "--alpha", "8", "--learning-rate", "0.01", "--max-tokens", "4096")


def report(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return read


def test_the_tiny_model_is_the_same_again(tiny: Path, tmp_path: Path) -> None:
    ran("tiny", tmp_path / "again.gguf")
    assert (tmp_path / "again.gguf").read_bytes() == tiny.read_bytes()


@pytest.mark.nvcc
def test_training_lowers_the_loss_on_what_it_has_not_seen(tiny: Path, collected: Path, tmp_path: Path) -> None:
    ran("train", collected, "--model", tiny, "--out", tmp_path, *QUICK)
    said = report(tmp_path)
    assert said["steps"] == 3
    assert sum(said["examples"].values()) > 5 and sum(said["held_out_examples"].values()) > 1
    assert said["held_out_loss_after"] < said["held_out_loss_before"]


def test_training_is_the_same_again(tiny: Path, lesson: Path, tmp_path: Path) -> None:
    tokens = Tokens(tiny)
    rows, left_out = tokenise(read_examples(lesson), tokens, 4096)
    tokens.close()
    assert not left_out
    settings = Settings(rank=4, alpha=8, learning_rate=0.01, epochs=3, device="cpu")
    for name in ("one", "two"):
        train(gguf=tiny, train_rows=rows, held_out_rows=[], out=tmp_path / name, settings=settings)
    assert report(tmp_path / "one")["loss"] == report(tmp_path / "two")["loss"]
    assert report(tmp_path / "one")["held_out_loss_after"] is None
    weights = [(tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


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
