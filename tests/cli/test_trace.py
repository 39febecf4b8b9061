"""`warpwright trace --import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chrome_traces import Maker
from warpwright.cli.main import run


def test_a_trace_is_told_in_words_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Maker()
    for index in range(100):
        made.launch(10 * index, 2)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made.document()), encoding="utf-8")
    assert run(["trace", "--import", str(path)]) == 0
    said = capsys.readouterr().out
    assert "bound by launches" in said
    assert "NVIDIA H200" in said
    assert run(["trace", "--import", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound_by"] == "launches"


def test_a_page_has_a_picture_and_escapes_the_programs_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Maker()
    made.launch(0, 20, "<script>alert(1)</script>|`k`")
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made.document()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["trace", "--import", str(path), "--format", "html"]) == 0
    page = (tmp_path / "trace.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "alert(1)</script>" not in page
    capsys.readouterr()
    assert run(["trace", "--import", str(path), "--format", "markdown"]) == 0
    said = capsys.readouterr().out
    assert "## Kernels" in said
    assert "<script>" not in said


def test_an_option_behind_the_script_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "a.py"
    script.write_text("import sys\nprint('--skip' in sys.argv)\n", encoding="utf-8")
    run(["trace", "--python", str(tmp_path / "none"), str(script), "--seconds=5", "--skip", "1", "--epochs", "2"])
    said = capsys.readouterr().err
    assert f"note: --seconds after {script} is an argument of the script" in said
    run(["trace", "--python", str(tmp_path / "none"), "--seconds=5", str(script), "--epochs", "2"])
    assert "note:" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--import", "none.json"], ["--import", "a", "b.py"], ["none.py"]])
def test_what_cannot_be_done_is_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err
