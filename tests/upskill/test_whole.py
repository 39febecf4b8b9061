"""Training of the weights themselves: learned, kept as changes, merged, cut to a rank, and gone on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from warpwright.assist.weights import ModelFile, find_model
from warpwright_upskill.console import StageError
from warpwright_upskill.export import read_adapter
from warpwright_upskill.gemma import BOS, EOS, load_weights
from warpwright_upskill.merge import merge
from warpwright_upskill.rows import Row
from warpwright_upskill.tiny import write_tiny_gemma
from warpwright_upskill.train import train
from warpwright_upskill.training.config import Config, read_config
from warpwright_upskill.training.lora import load_adapter
from warpwright_upskill.training.whole import read_changes

pytestmark = [pytest.mark.upskill]

CONFIG = Config(
    rank=0, learning_rate=0.01, epochs=4, batch=4, mix=(("formula", 1.0),), device="cpu", save_every=3, warmup=0.0
)
ROWS = [Row(str(n), "formula", (BOS, 5 + n, 9, 20 + n, 30 + n, EOS), 3, "train" if n % 4 else "dev") for n in range(12)]


@pytest.fixture(scope="module")
def whole(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    report = train(gguf=tiny, rows=ROWS, out=out, config=CONFIG)
    assert report["loss"][-1] < 0.8 * report["loss"][0]
    return out


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(torch.tensor([ROWS[1].ids])).logits


def test_the_merged_file_is_what_was_trained(tiny: Path, whole: Path, tmp_path: Path) -> None:
    merged = tmp_path / "merged.gguf"
    assert merge(whole, tiny, merged) == len(read_changes(whole))
    found_as = [find_model(str(each)) for each in (tiny, merged)]
    assert [isinstance(each, ModelFile) and each.is_taught for each in found_as] == [False, True]
    taught = logits(load_adapter(load_weights(tiny, device="cpu", dtype="float32"), whole, tiny))
    base, found = (logits(load_weights(each, device="cpu", dtype="float32")) for each in (tiny, merged))
    assert (found - taught).abs().max() < 0.1 * (base - taught).abs().max()


def test_a_rank_that_holds_all_changes_nothing_and_a_small_one_is_nearest(whole: Path) -> None:
    changes = read_changes(whole)
    name, change = max(changes.items(), key=lambda each: float(np.abs(each[1]).max()))
    left = []
    for rank in (1, 4, max(change.shape)):
        config, matrices = read_adapter(whole, rank)
        stem = f"base_model.model.{name.removesuffix('.weight')}"
        product = matrices[f"{stem}.lora_B.weight"] @ matrices[f"{stem}.lora_A.weight"]
        assert config["lora_alpha"] == config["r"] == rank
        assert matrices[f"{stem}.lora_A.weight"].shape == (rank, change.shape[1])
        left.append(float(np.square(product - change.astype(np.float32)).sum()))
    assert left[0] > left[1] > left[2]
    assert left[2] < 1e-6


@pytest.mark.parametrize("rank", [0, 4], ids=["the weights", "LoRA matrices"])
def test_training_goes_on_from_trained_weights(rank: int, tiny: Path, whole: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, rank=rank, alpha=16, max_steps=1, learning_rate=1e-6)
    fresh = train(gguf=tiny, rows=ROWS, out=tmp_path / "fresh", config=config)
    later = train(gguf=tiny, rows=ROWS, out=tmp_path / "later", config=config, start=whole)
    assert later["loss"][0] < fresh["loss"][0]


def test_an_interrupted_run_goes_on_to_the_same_weights(tiny: Path, whole: Path, tmp_path: Path) -> None:
    def interrupted(message: str, share: float | None) -> None:
        if message.startswith("step 5"):
            raise KeyboardInterrupt

    config = replace(CONFIG, judge_every=0)
    with pytest.raises(KeyboardInterrupt):
        train(gguf=tiny, rows=ROWS * 3, out=tmp_path, config=replace(config, epochs=8), progress=interrupted)
    again = train(gguf=tiny, rows=ROWS * 3, out=tmp_path, config=replace(config, epochs=8))
    assert again["resumed_at"] > 0
    straight = tmp_path / "straight"
    train(gguf=tiny, rows=ROWS * 3, out=straight, config=replace(config, epochs=8))
    for name, change in read_changes(straight).items():
        assert np.array_equal(change, read_changes(tmp_path)[name])


def test_weights_of_another_base_are_refused(whole: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    write_tiny_gemma(other, seed=7)
    with pytest.raises(StageError, match="was trained on"):
        load_adapter(load_weights(other, device="cpu", dtype="float32"), whole, other)
    (tmp_path / "changes.safetensors").write_bytes(b"no")
    with pytest.raises(StageError, match="damaged"):
        read_changes(tmp_path)


def test_weights_that_are_trained_are_not_kept_in_four_bits() -> None:
    with pytest.raises(StageError, match="set one of the two"):
        read_config(None, ["rank=0", "quantise=nf4"])
