"""Training on rows of tokens: the same again, gone on with after an interruption, in two processes, in four bits."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.upskill import refused, settings
from warpwright.assist.formula_task import FormulaRequest, formula_answer, formula_prompt
from warpwright.formulas.sampler import samples
from warpwright_upskill.console import StageError
from warpwright_upskill.gemma import BOS, EOS, Tokens, Vocabulary, vocabulary_hash
from warpwright_upskill.rows import PRETRAIN, Row, read_rows, write_rows
from warpwright_upskill.tiny import write_tiny_gemma
from warpwright_upskill.train import train
from warpwright_upskill.training.config import Config

pytestmark = [pytest.mark.upskill, pytest.mark.llm]

CONFIG = Config(
    rank=4, alpha=8, learning_rate=0.01, epochs=2, batch=4, mix=(("formula", 1.0),), dropout=0.1, device="cpu",
    judge_every=5, judged=2, answer_tokens=8, save_every=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def rows(tiny: Path) -> list[Row]:
    tokens = Tokens(tiny)
    found: list[Row] = []
    for number, each in enumerate(itertools.islice(samples("rows"), 18)):
        prompt = [BOS, *tokens.encode(formula_prompt(FormulaRequest(each.family)))]
        answer = tokens.encode(formula_answer(each.text))
        split = "dev" if number % 6 == 5 else "train"
        found.append(Row(str(number), "formula", (*prompt, *answer, EOS), len(prompt), split))
    tokens.close()
    return found


@pytest.fixture(scope="module")
def row_file(rows: list[Row], tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "some.rows"
    write_rows(rows, vocabulary_hash(tiny)[0], path)
    return path


@pytest.fixture(scope="module")
def whole(rows: list[Row], tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole")
    train(gguf=tiny, rows=rows, out=out, config=CONFIG)
    return out


def report(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return read


def adapter(folder: Path) -> bytes:
    return (folder / "adapter_model.safetensors").read_bytes()


class InterruptionError(Exception):
    pass


def interrupted(message: str, share: float | None) -> None:
    if message.startswith("step 5:"):
        raise InterruptionError


def test_the_vocabulary_says_what_llama_cpp_was_told(tiny: Path) -> None:
    tokens, vocabulary = Tokens(tiny), Vocabulary(tiny)
    for text in (" y[r] = sum[c] x[r, c]", "__global__ void k() {\n\t}\n", "größer"):
        assert vocabulary.decode([BOS, *tokens.encode(text), EOS]) == text
    tokens.close()


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_result(
    rows: list[Row], tiny: Path, whole: Path, tmp_path: Path
) -> None:
    with pytest.raises(InterruptionError):
        train(gguf=tiny, rows=rows, out=tmp_path, config=CONFIG, progress=interrupted)
    train(gguf=tiny, rows=rows, out=tmp_path, config=CONFIG)
    assert report(tmp_path)["resumed_at"] == 4
    assert report(tmp_path)["loss"] == report(whole)["loss"]
    assert report(tmp_path)["judged"] == report(whole)["judged"]
    assert adapter(tmp_path) == adapter(whole)
    assert not list(tmp_path.glob("*.pt"))


def test_another_run_is_not_gone_on_with(rows: list[Row], tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InterruptionError):
        train(gguf=tiny, rows=rows, out=tmp_path, config=CONFIG, progress=interrupted)
    for other_rows, config in ((rows, replace(CONFIG, learning_rate=0.02)), (rows[1:], CONFIG)):
        with pytest.raises(StageError, match="other settings"):
            train(gguf=tiny, rows=other_rows, out=tmp_path, config=config)
    (tmp_path / "unfinished.pt").write_bytes(b"no")
    with pytest.raises(StageError, match="damaged"):
        train(gguf=tiny, rows=rows, out=tmp_path, config=CONFIG)


@pytest.mark.slow
def test_two_processes_do_what_one_does(rows: list[Row], row_file: Path, tiny: Path, tmp_path: Path) -> None:
    """Dropout is drawn in each process by itself, so there is none here."""
    changes = settings(
        rank=4, alpha=8, learning_rate=0.01, epochs=1, batch=4, dropout=0, judge_every=2, judged=3, answer_tokens=4,
        save_every=2, device="cpu", tokens_at_once=400, mix="{formula=1}",
    )  # fmt: skip
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launch, "-m", "warpwright_upskill.train", str(row_file), "--model", str(tiny), *changes]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", str(tmp_path / "two")], env=env, check=True, capture_output=True, timeout=240)
    one = replace(CONFIG, epochs=1, dropout=0.0, judge_every=0)
    train(gguf=tiny, rows=rows, out=tmp_path / "one", config=one)
    assert report(tmp_path / "two")["processes"] == 2
    assert report(tmp_path / "two")["loss"] == pytest.approx(report(tmp_path / "one")["loss"], abs=0.002)
    assert report(tmp_path / "two")["dev_loss_after"] == pytest.approx(report(tmp_path / "one")["dev_loss_after"], 1e-3)


@pytest.mark.slow
def test_frozen_weights_of_four_bits_are_learned_beside(rows: list[Row], tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    config = replace(CONFIG, quantise="nf4", recompute=True, epochs=3)
    said = train(gguf=tiny, rows=rows, out=tmp_path, config=config)
    assert said["dev_loss_after"] < said["dev_loss_before"]


@pytest.mark.slow
def test_training_goes_on_from_an_adapter_with_earlier_rows(
    rows: list[Row], tiny: Path, whole: Path, tmp_path: Path
) -> None:
    config = replace(CONFIG, judge_every=0, pretrain_epochs=1, replay=0.5)
    text = Row("text", PRETRAIN, rows[0].ids, 1)
    without_share = replace(rows[4], task="plan")
    said = train(
        gguf=tiny, rows=[*rows[:4], text, without_share], replayed=rows[6:11], out=tmp_path, config=config, start=whole
    )
    assert said["planned_steps"] == 1 + 2 * (1 + 1)
    assert said["dev_loss_before"] is None
    assert said["loss"][1] < report(whole)["loss"][0]


@pytest.mark.slow
def test_an_adapter_of_another_base_is_refused(rows: list[Row], tiny: Path, whole: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    write_tiny_gemma(other, seed=1)
    with pytest.raises(StageError, match=r"was trained on tiny\.gguf, not on other\.gguf"):
        train(gguf=other, rows=rows, out=tmp_path / "out", config=CONFIG, start=whole)
    with pytest.raises(StageError, match="holds no trained adapter"):
        train(gguf=tiny, rows=rows, out=tmp_path / "out", config=CONFIG, start=tmp_path)


def test_a_poisoned_row_is_refused(rows: list[Row], tiny: Path, tmp_path: Path) -> None:
    vocabulary, size = vocabulary_hash(tiny)
    path = tmp_path / "some.rows"
    poisoned = {
        "has a token that the model has not": replace(rows[1], ids=(*rows[1].ids[:-1], size, EOS)),
        "has no answer": replace(rows[1], answer_at=len(rows[1].ids) - 1),
        "does not begin and end": replace(rows[1], ids=(*rows[1].ids, 5)),
        "has an unknown task or split": replace(rows[1], split="test"),
    }
    for said, row in poisoned.items():
        write_rows([rows[0], row], vocabulary, path)
        with pytest.raises(StageError, match=rf"row 2 \(1\) {said}"):
            read_rows(path, vocabulary, size)
    write_rows(rows, "other", path)
    with pytest.raises(StageError, match="another vocabulary"):
        read_rows(path, vocabulary, size)
    path.write_bytes(b"PK no")
    assert "is no file of rows" in refused("train", path, "--model", tiny, "--out", tmp_path / "a")
    assert "cannot be read" in refused("train", tmp_path / "none.rows", "--model", tiny, "--out", tmp_path / "a")


def test_nothing_to_train_or_to_judge_on(rows: list[Row], tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="nothing to train on"):
        train(gguf=tiny, rows=rows, out=tmp_path, config=replace(CONFIG, mix=(("plan", 1.0),)))
    with pytest.raises(StageError, match="no example of these tasks is of the split `dev`"):
        train(gguf=tiny, rows=rows[:4], out=tmp_path, config=CONFIG)
