"""`warpwright model`: which model is used, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command


@pytest.mark.llm
def test_info_of_the_default(tmp_path: Path) -> None:
    ran = run_command("model", "info", "--format", "json", cwd=tmp_path)
    assert ran.status == 0
    assert Path(ran.json["path"]).stat().st_size == ran.json["bytes"]
    assert ran.json["runtime"].startswith("llama-cpp-python ")


def test_info_of_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_text("hello", encoding="utf-8")
    ran = run_command("model", "info", "--model", "a.gguf", cwd=tmp_path)
    assert ran.status == 2
    assert "is not a GGUF file" in ran.stderr


def test_info_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    ran = run_command("model", "info", "--model", tmp_path / "none.gguf", cwd=tmp_path)
    assert ran.status == 2
    assert "cannot be read (No such file or directory)" in ran.stderr


def test_pull_of_what_is_no_name(tmp_path: Path) -> None:
    ran = run_command("model", "pull", "not a name", cwd=tmp_path)
    assert ran.status == 2
    assert "is not a Hugging Face name" in ran.stderr
