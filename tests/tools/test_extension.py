"""The parts of the VS Code extension that need no editor, in Node's own runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[2] / "client-vscode"


def test_what_needs_no_editor() -> None:
    if shutil.which("node") is None or not (CLIENT / "node_modules").is_dir():
        pytest.skip("Node and `npm ci` in client-vscode are needed")
    command = ["node", "test/unit.mjs"]
    ran = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr
