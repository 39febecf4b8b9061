"""The harness as a process, on a machine without a GPU: it says so and ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="a GPU is here")
@pytest.mark.parametrize("what", ["--probe", "--results"])
def test_without_a_gpu_it_says_what_is_missing(what: str) -> None:
    read_end, write_end = os.pipe()
    arguments = [what] if what == "--probe" else [what, str(write_end)]
    done = subprocess.run(
        [sys.executable, "-m", "warpwright_harness", *arguments],
        input="",
        capture_output=True,
        text=True,
        pass_fds=(write_end,),
        check=False,
        timeout=120,
    )
    os.close(write_end)
    with os.fdopen(read_end) as events:
        answer = json.loads(done.stdout) if what == "--probe" else json.loads(events.readline())["device"]
    assert done.returncode == (0 if what == "--probe" else 1)
    assert "torch" in answer["missing"]
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="a GPU is here")
def test_without_a_gpu_the_architecture_is_not_known() -> None:
    command = [sys.executable, "-m", "warpwright_harness", "--arch"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("", "")
