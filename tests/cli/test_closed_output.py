"""A command whose standard output was closed before it started."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor in a shell")
def test_a_closed_standard_output_is_no_internal_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m warpwright.cli explain >&-"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
