"""Every stage explains itself, and refuses what it cannot do in one sentence with exit status 2."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.upskill import STAGES, ran, refused
from warpwright_upskill.console import StageError
from warpwright_upskill.training.config import Config, read_config, write_config


@pytest.mark.parametrize("stage", STAGES)
def test_explains_itself(stage: str) -> None:
    shown = ran(stage, "--help").stdout
    assert f"warpwright_upskill.{stage}" in shown
    assert len(shown.splitlines()) > 5


def test_examples_that_are_not_there(tmp_path: Path) -> None:
    assert "`collect` writes it" in refused("train", tmp_path / "none.jsonl", "--out", tmp_path / "a")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"version": 1}', '{"version": 99}', "\x00", '"x"', "\udcff"])
def test_examples_that_are_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    said = refused("train", path, "--out", tmp_path / "a")
    assert "examples.jsonl" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("targets=q_proj,x_proj", "'x_proj'"), ("targets=[]", "targets"), ("rank=-1", "rank"), ("rank=2.5", "rank"),
        ("dropout=1", "dropout"), ("learning_rate=nan", "learning_rate"), ("quantise=int3", "none, nf4"),
        ("speed=9", "no setting 'speed'"), ("rank", "name=value"), ("mix=plan", "mix"), ("mix={plan='x'}", "mix"),
        ("mix={poetry=1}", "poetry"), ("mix={plan=0}", "mix"), ("mix={plan=-1}", "plan"), ("epochs=true", "epochs"),
    ],
)  # fmt: skip
def test_a_setting_that_is_none(change: str, said: str) -> None:
    with pytest.raises(StageError, match=re.escape(said)):
        read_config(None, [change])


@pytest.mark.parametrize(("name", "text"), [("run.toml", "rank = "), ("run.json", "{"), ("run.json", "[]")])
def test_a_configuration_that_is_none(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(StageError, match=name):
        read_config(tmp_path / name)
    with pytest.raises(StageError, match="cannot be read"):
        read_config(tmp_path / "none.toml")


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path) -> None:
    config = Config(rank=8, mix=(("plan", 1.0),), targets=("q_proj",))
    write_config(config, tmp_path / "run.json")
    assert read_config(tmp_path / "run.json") == config
    (tmp_path / "run.toml").write_text('rank = 8\ntargets = ["q_proj"]\n[mix]\nplan = 1\n')
    assert read_config(tmp_path / "run.toml") == config


@pytest.mark.nvcc
def test_samples_that_are_not_there(tmp_path: Path) -> None:
    said = refused("collect", "--samples", tmp_path / "none", "--out", tmp_path / "examples.jsonl")
    assert "does not exist" in said


def test_nothing_is_collected_without_a_compiler(tmp_path: Path) -> None:
    env = {"WARPWRIGHT_NVCC": str(tmp_path / "nvcc")}
    said = refused("collect", "--out", tmp_path / "examples.jsonl", env=env)
    assert "Nothing is collected that was not compiled." in said
    assert not (tmp_path / "examples.jsonl").exists()


@pytest.mark.upskill
@pytest.mark.llm
def test_a_model_that_is_none(lesson: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF but not really")
    assert "model.gguf" in refused("train", lesson, "--model", model, "--out", tmp_path / "a")
    model.write_text("no")
    assert "GGUF" in refused("train", lesson, "--model", model, "--out", tmp_path / "a")


@pytest.mark.upskill
def test_an_adapter_that_is_none(tmp_path: Path) -> None:
    said = refused("export", tmp_path, "--out", tmp_path / "adapter.gguf")
    assert "`train` writes it" in said
    assert not (tmp_path / "adapter.gguf").exists()
    (tmp_path / "adapter_config.json").write_text(json.dumps({"lora_alpha": 1}))
    (tmp_path / "adapter_model.safetensors").write_bytes(b"\xff" * 100)
    assert "damaged" in refused("export", tmp_path, "--out", tmp_path / "adapter.gguf")
    assert not (tmp_path / "adapter.gguf").exists()


@pytest.mark.upskill
@pytest.mark.llm
def test_a_model_is_not_installed_as_an_adapter(tiny: Path, tmp_path: Path) -> None:
    env = {"WARPWRIGHT_DATA_DIR": str(tmp_path)}
    assert "no LoRA adapter" in refused("install", tiny, env=env)
    (tmp_path / "cut.gguf").write_bytes(tiny.read_bytes()[:100])
    assert "damaged" in refused("install", tmp_path / "cut.gguf", env=env)
    assert "not a GGUF file" in refused("install", Path(__file__), env=env)
    assert not list(tmp_path.glob("adapters/*"))
