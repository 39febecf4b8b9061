"""The command that says what was found on this machine."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from support.editor import VSCODE, start_editor


def test_it_names_each_part_and_says_what_to_do_about_what_is_missing(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path) as editor:
        params = types.ExecuteCommandParams(command="warpwright.doctor", arguments=[])
        result = editor.request("workspace/executeCommand", params, 120)
    parts = {part["name"]: part for part in result["parts"]}
    assert result["status"] == "found"
    assert parts["analysis"]["found"]
    assert all(part["found"] or part["advice"] for part in parts.values())
    assert all(name in result["message"] for name, part in parts.items() if not part["found"])
    for name, part in parts.items():
        assert f"| {name} | {'found' if part['found'] else '**missing**'} |" in result["page"]


def test_a_status_asks_for_what_it_shows(tmp_path: Path) -> None:
    model = tmp_path / "small.gguf"
    with start_editor(VSCODE, tmp_path) as editor:
        params = types.ExecuteCommandParams(command="warpwright.surroundings", arguments=[{"model": str(model)}])
        result = editor.request("workspace/executeCommand", params, 60)
    assert [part["name"] for part in result["parts"]] == ["analysis", "compiler", "emulator", "GPU", "model"]
    assert all(part["found"] or part["advice"] for part in result["parts"])
    told = result["parts"][-1]["what"]
    assert "small.gguf" in told or "llama-cpp-python" in told
