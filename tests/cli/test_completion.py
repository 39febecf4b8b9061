"""What a shell is told behind a tab; docs/cli.md says how it is set up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.command import command_on_path, environment, run_command

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("warpwright tor", {"plain,torch-check"}),
        ("warpwright check --st", {"plain,--statistics"}),
        ("warpwright check --select memory,bank", {"plain,memory,bank-conflict"}),
        ("warpwright explain pad-s", {"plain,pad-shared-array"}),
        ("warpwright verify a.c", {"file,a.c"}),
    ],
)
def test_what_goes_on(words: str, offered: set[str], tmp_path: Path) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_WARPWRIGHT_COMPLETE": "bash_complete"}
    assert set(run_command(cwd=tmp_path, env=asked).stdout.split()) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="not installed: bash")
def test_the_line_for_bash(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    line = next(line for line in page.splitlines() if line.startswith("| Bash")).split("`")[3]
    script = (
        f"{line}\nCOMP_WORDS=(warpwright ex) COMP_CWORD=1\n_warpwright_completion warpwright\necho ${{COMPREPLY[@]}}"
    )
    path = {"PATH": command_on_path(tmp_path)}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment(path), capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "explain\n", ran.stderr
