"""From examples to an adapter that llama.cpp runs as torch does, on a tiny random Gemma 3."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.upskill import TASK, ran, refused, settings
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import CompletionRequest
from warpwright.assist.prompts import generate_prompt
from warpwright.assist.weights import ModelFile
from warpwright_upskill.gemma import Vocabulary
from warpwright_upskill.gguf_file import GgufFile, fingerprint, read_gguf
from warpwright_upskill.prune import kept_tokens
from warpwright_upskill.tiny import write_tiny_gemma

pytestmark = [pytest.mark.upskill, pytest.mark.llm]

QUICK = settings(max_steps=3, rank=4, alpha=8, learning_rate=0.01, max_tokens=4096, mix="{formula=1, repair=1}")


def report(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return read


def test_the_tiny_model_is_the_same_again(tiny: Path, tmp_path: Path) -> None:
    ran("tiny", tmp_path / "again.gguf")
    assert (tmp_path / "again.gguf").read_bytes() == tiny.read_bytes()


@pytest.mark.slow
@pytest.mark.nvcc
def test_training_lowers_the_loss(tiny: Path, collected: Path, tmp_path: Path) -> None:
    ran("train", collected, "--model", tiny, "--out", tmp_path, *QUICK)
    said = report(tmp_path)
    assert said["steps"] == 3
    assert sum(said["rows"].values()) > 5
    assert said["loss"][-1] < said["loss"][0]


@pytest.mark.slow
def test_learns_by_heart(learned: Path) -> None:
    assert report(learned)["loss"][-1] < 0.7 < report(learned)["loss"][0]


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_adapter_of_another_model_is_refused(tiny: Path, lesson: Path, learned: Path, tmp_path: Path) -> None:
    """The check runs the adapter on the model it is for; the embedded default has other widths than the tiny one."""
    said = refused("export", learned, "--out", tmp_path / "adapter.gguf", "--check", lesson)
    assert "adapter" in said


@pytest.mark.slow
def test_the_exported_file_says_what_it_is_of(adapter: Path, learned: Path) -> None:
    card = json.loads(adapter.with_name(f"{adapter.name}.json").read_text(encoding="utf-8"))
    assert card["sha256"] == hashlib.sha256(adapter.read_bytes()).hexdigest()
    assert card["base"] == json.loads((learned / "base.json").read_text(encoding="utf-8"))
    assert "Gemma Terms of Use" in adapter.with_name(f"{adapter.name}.NOTICE").read_text(encoding="utf-8")


def answer(model: Path, adapter: Path | None) -> str:
    with ChildEngine(ModelFile(model, "tiny"), adapter) as engine:
        return engine.complete(CompletionRequest(generate_prompt(TASK), max_tokens=60)).text


@pytest.mark.slow
def test_a_cut_vocabulary_changes_no_answer(tiny: Path, adapter: Path, tmp_path: Path) -> None:
    """The tiny model's first 500 tokens are all that the lesson is made of; the other words are cut."""
    pruned = tmp_path / "pruned.gguf"
    said = ran("prune", "--model", tiny, "--first", "500", "--out", pruned).stdout
    assert "500 of" in said and pruned.stat().st_size < tiny.stat().st_size
    assert fingerprint(read_gguf(pruned)) == fingerprint(read_gguf(tiny))
    assert len(Vocabulary(pruned)) == 500
    assert answer(pruned, adapter)[:40] == answer(tiny, adapter)[:40] != answer(tiny, None)[:40]


def test_single_characters_stay_in_a_cut_vocabulary() -> None:
    """Gemma numbers them behind all that is merged of them; without them "x" is written as a byte."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "the", "\u2581sum", "warp", "\u00e9", "\u2581", "x", "["]
    values = {
        "tokenizer.ggml.tokens": [each.encode() for each in tokens],
        "tokenizer.ggml.token_type": [3] * 4 + [1] * 7,
    }
    assert kept_tokens(GgufFile(Path("cut"), values, {}, ()), 5) == [0, 1, 2, 3, 4, 8, 9, 10]


@pytest.mark.slow
def test_the_merged_model_answers_as_base_and_adapter_do(
    tiny: Path, adapter: Path, learned: Path, tmp_path: Path
) -> None:
    ran("merge", learned, "--model", tiny, "--out", tmp_path / "merged.gguf")
    assert answer(tmp_path / "merged.gguf", None)[:40] == answer(tiny, adapter)[:40]
    write_tiny_gemma(tmp_path / "other.gguf", seed=1)
    said = refused("merge", learned, "--model", tmp_path / "other.gguf", "--out", tmp_path / "a.gguf")
    assert "was trained on tiny.gguf" in said


@pytest.mark.parametrize("length", [0, 3, 60, 5000])
def test_a_gguf_that_is_cut_off(length: int, tiny: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny.read_bytes()[:length])
    assert "cut.gguf" in refused("prune", "--model", cut, "--out", tmp_path / "out.gguf")
