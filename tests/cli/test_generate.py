"""`warpwright generate`: what the model wrote is shown only as what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command
from support.untaught import untaught_model


@pytest.mark.llm
@pytest.mark.nvcc
def test_a_draft_and_its_report(tmp_path: Path) -> None:
    """The untuned model may fail to write a kernel; then it must say so, and offer nothing."""
    command = ("generate", "add two vectors", "--seconds", "240", "--format", "json")
    ran = run_command(*command, cwd=tmp_path, env=untaught_model(), seconds=300)
    answer = ran.json
    assert answer["raw"]
    if ran.status == 0:
        (candidate,) = answer["candidates"]
        assert "__global__" in candidate["code"]
        assert candidate["report"]["levels"] == ["parsed", "compiled"]
        assert (answer["best"], answer["reason"]) == (0, "")
    else:
        assert ran.status == 1
        assert answer["best"] is None
        assert answer["reason"] or answer["candidates"][0]["report"]["status"] == "does-not-compile"


@pytest.mark.llm
def test_without_a_taught_model_it_says_so_at_once(tmp_path: Path) -> None:
    ran = run_command("generate", "add two vectors", cwd=tmp_path, env={"WARPWRIGHT_DATA_DIR": str(tmp_path)})
    assert ran.status == 2
    assert ran.stdout == ""
    assert "No taught model is installed" in ran.stderr


def test_an_empty_description(tmp_path: Path) -> None:
    ran = run_command("generate", "  ", cwd=tmp_path)
    assert ran.status == 2
    assert "say in words" in ran.stderr


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    ran = run_command("generate", "add two vectors", "--model", "/nowhere/model.gguf", cwd=tmp_path)
    assert ran.status == 2
    assert "/nowhere/model.gguf" in ran.stderr
