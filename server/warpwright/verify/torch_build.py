"""How extensions are built for the torch that the harness runs, asked of the harness's own Python once."""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache

from warpwright.missing import Missing
from warpwright.toolchain.compilation import TorchBuild
from warpwright.verify.harness import harness_environment, harness_python

SECONDS = 120.0
_ADVICE = "Install torch for that Python, or set WARPWRIGHT_GPU_PYTHON to one that has it."


def find_torch() -> TorchBuild | Missing:
    """What nvcc has to be told, or why it is not known. Takes seconds the first time."""
    return _asked(harness_python())


@lru_cache(maxsize=4)
def _asked(python: str) -> TorchBuild | Missing:
    command = [python, "-m", "warpwright_harness.extension", "--settings"]
    try:
        answer = subprocess.run(
            command, capture_output=True, env=harness_environment(), timeout=SECONDS, check=False, text=True
        )
        settings = json.loads(answer.stdout.strip().splitlines()[-1])
        return TorchBuild(settings["torch"], tuple(settings["flags"]), tuple(settings["libraries"]))
    except subprocess.TimeoutExpired:
        return Missing("torch", f"{python} did not say within {SECONDS:g} seconds how it builds extensions.", _ADVICE)
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return Missing("torch", f"{python} has no torch that builds extensions.", _ADVICE)
