"""Files whose bytes are not UTF-8, or whose lines end otherwise: every command reads them, and writes no other byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import run_command

STRICT = {"PYTHONIOENCODING": "utf-8:strict", "PYTHONUTF8": "0"}
CONFLICT = b"""// caf\xe9 volatile __syncthreads
__global__ void turn(float *out, const float *in) {  // \xdf
  __shared__ float tile[32][32];  // gr\xfc\xdfe
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 32 + x];  // \xe9
  __syncthreads();
  out[y * 32 + x] = tile[x][y];
}

void run(float *out, const float *in) {
  puts("na\xefve");
  turn<<<1, dim3(32, 32)>>>(out, in);
}
"""
TEXTS = {
    "latin": CONFLICT,
    "marked": b"\xef\xbb\xbf" + CONFLICT,
    "windows": CONFLICT.replace(b"\n", b"\r\n"),
    "old": CONFLICT.replace(b"\n", b"\r"),
}
texts = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@pytest.mark.sampled(5)
@texts
@pytest.mark.parametrize(
    "arguments",
    [
        "check", "check --format json", "check --format sarif", "check --format gitlab", "check --format github",
        "facts", "facts --format source", "facts --format json", "problem",
    ],
)  # fmt: skip
def test_every_command_reads_it(tmp_path: Path, text: bytes, arguments: str) -> None:
    (tmp_path / "a.cu").write_bytes(text)
    ran = run_command(*arguments.split(), "a.cu", cwd=tmp_path, env=STRICT)
    assert ran.status == 0, ran.stderr
    if arguments.endswith(("json", "sarif", "gitlab")):
        assert "turn" in ran.stdout
        json.dumps(ran.json, ensure_ascii=False).encode("utf-8")
    if arguments.startswith("check"):
        assert "bank-conflict" in ran.stdout


@pytest.mark.sampled(2)
@pytest.mark.nvcc
@texts
def test_a_fix_changes_no_other_byte(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.cu"
    text = text.replace(b"na\xefve", b"naive")  # in a string nvcc does not take it
    path.write_bytes(text)
    shown = run_command("fix", "--rule", "bank-conflict", "a.cu", cwd=tmp_path, env=STRICT)
    assert "[32 + 1]" in shown.stdout, shown.stderr
    written = run_command("fix", "--rule", "bank-conflict", "--write", "a.cu", cwd=tmp_path, env=STRICT)
    assert written.status == 0, written.stderr
    assert path.read_bytes() == text.replace(b"tile[32][32]", b"tile[32][32 + 1]")


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("patch") is None, reason="patch applies the diff")
@pytest.mark.parametrize("name", ["latin", "windows"])
def test_the_diff_of_a_search_changes_no_other_byte(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.cu"
    text = TEXTS[name].replace(b"na\xefve", b"naive")
    path.write_bytes(text)
    asked = [sys.executable, "-m", "warpwright.cli", "optimize", "--plan", "fixed", "--seconds", "60", "a.cu"]
    environment = {**os.environ, **STRICT, "WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    ran = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    diff = ran.stdout[ran.stdout.index(b"--- a/a.cu") :]
    applied = subprocess.run(["patch", "--binary", "-p1"], cwd=tmp_path, input=diff, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stdout
    changed = path.read_bytes()
    assert changed != text
    assert [byte for byte in changed if byte > 127] == [byte for byte in text if byte > 127]
    assert changed.count(b"\r\n") == text.count(b"\r\n")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_in_a_sentence(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.cu").write_bytes(("\ufeff" + CONFLICT.decode("latin-1")).encode(encoding))
    ran = run_command("check", "a.cu", cwd=tmp_path)
    assert ran.status == 2
    assert ran.stderr == "error: a.cu: is in UTF-16, which nvcc does not read; save it as UTF-8\n"


def test_a_file_with_a_zero_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(CONFLICT + b"\0")
    ran = run_command("check", "a.cu", cwd=tmp_path)
    assert ran.status == 2
    assert ran.stderr == "error: a.cu: is a binary file, not CUDA source\n"
