"""What the processes that run kernels import: what is installed, and nothing of the folder in which they are
started, which may be a project's that nobody trusts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from warpwright.verify.harness import harness_environment


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "argparse.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".", os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "warpwright_harness", "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env=harness_environment(), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"warpwright_harness" in done.stdout
