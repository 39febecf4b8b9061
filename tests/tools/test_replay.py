"""tools/replay.py, on one case and one file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "replay.py"
KERNEL = "__global__ void scale(float *out, const float *in) { out[threadIdx.x] = in[threadIdx.x]; }\n"


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False)


def test_what_two_versions_make_of_the_same_texts_is_compared(tmp_path: Path) -> None:
    (tmp_path / "add-restrict.md").write_text(f"# add-restrict\n\n## two\n\n```cuda\n{KERNEL}```\n", encoding="utf-8")
    (tmp_path / "plain.cu").write_text(KERNEL, encoding="utf-8")
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    assert _run("write", before, tmp_path).returncode == 0

    lines = before.read_text("utf-8").splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        '{"place": "add-restrict/two.cu"',
        f'{{"place": "{tmp_path / "plain.cu"}"',
    ]
    same = _run("compare", before, before)
    assert (same.returncode, same.stdout.splitlines()[-1].partition("; ")[2]) == (0, "no difference")

    after.write_text(before.read_text("utf-8").replace("__restrict__", "__restrict", 1), encoding="utf-8")
    other = _run("compare", before, after)
    assert other.returncode == 1
    assert "another edits: add-restrict/two.cu: scale: add-restrict" in other.stdout
