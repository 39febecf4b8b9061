"""A real editor: headless Neovim attaches to the server, shows the finding and applies what it offers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.editor import SERVER
from support.kernels import SEARCHED

pytestmark = pytest.mark.editor
SCRIPT = Path(__file__).with_name("neovim.lua")


def drive(folder: Path, *actions: str) -> dict[str, Any]:
    """Open the kernel in Neovim, choose the actions one after another, and return what was seen."""
    return follow(folder, SEARCHED, [{"action": action, "seconds": 120} for action in actions])


def follow(folder: Path, text: str, steps: list[dict[str, object]]) -> dict[str, Any]:
    """Open a text in Neovim, take the steps of neovim.lua, and return what was seen."""
    kernel = folder / "a.cu"
    kernel.write_text(text, encoding="utf-8")
    result = folder / "seen.json"
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "WARPWRIGHT_MODEL": "/no/such/model.gguf",  # what is under test here does not wait for a model
        "WW_COMMAND": json.dumps(SERVER),
        "WW_STEPS": json.dumps(steps),
        "WW_RESULT": str(result),
    }
    command = ["nvim", "--headless", "--clean", "-n", "-u", "NONE", str(kernel), "-c", f"luafile {SCRIPT}"]
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.exists(), done.stderr
    seen: dict[str, Any] = json.loads(result.read_text())
    assert not [message for message in seen["messages"] if message.startswith("failed")], (seen, done.stderr)
    return seen


def test_shows_the_finding_and_silences_it(tmp_path: Path) -> None:
    seen = drive(tmp_path, "Suppress bank-conflict")
    assert seen["diagnostic"]["code"] == "bank-conflict"
    assert seen["diagnostic"]["source"] == "warpwright"
    assert seen["diagnostic"]["words"] == "tile[x][y]"
    assert "    // warpwright: ignore[bank-conflict]\n    /* é😀 */ out" in seen["text"]
    assert seen["gone"]


@pytest.mark.nvcc
def test_applies_the_fix(tmp_path: Path) -> None:
    seen = drive(tmp_path, "Pad the rows of tile")
    assert "Optimize kernel transpose" in seen["offered"]
    assert seen["text"] == SEARCHED.replace("tile[32][32]", "tile[32][32 + 1]")
    assert seen["gone"]


@pytest.mark.slow
@pytest.mark.nvcc
def test_optimizes_the_kernel(tmp_path: Path) -> None:
    seen = drive(tmp_path, "Optimize kernel transpose")
    assert seen["text"] == SEARCHED.replace("tile[32][32]", "tile[32][32 + 1]")
    assert seen["gone"]


@pytest.mark.nvcc
def test_shows_what_nvcc_says_and_what_a_kernel_takes(tmp_path: Path) -> None:
    text = "__global__ void k(float *a) {\n  /* é */ a[threadIdx.x] = missing;\n}\n"
    seen = follow(tmp_path, text, [{"says": '"missing" is undefined', "old": "missing", "new": "1", "seconds": 60}])
    assert seen["compiler"]["words"] == "missing"
    assert seen["compiler"]["moved"] == "missing"
    assert seen["compiler"]["severity"] == 1
    assert seen["lenses"][:4] == ["Optimize", "Verify", "Profile (emulated)", "Show SASS"]
    assert "sm_90: " in seen["lenses"][-1] and " registers" in seen["lenses"][-1]
