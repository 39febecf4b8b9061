"""Draws what the commands print, as they do, for the documentation: docs/pictures/*.svg.

python tools/pictures.py

The pages of a profile and of machine code are drawn by Chromium, and left as they are where there is none.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text
from warpwright.cli.report_text import report_text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = {
    "check": ["check", "csrc_samples/memory/transpose_tiled/kernel.cu"],
    "facts": ["facts", "csrc_samples/reductions/reduce_interleaved/kernel.cu", "--kernel", "block_sums"],
    "profile": ["profile", "csrc_samples/memory/transpose_tiled/kernel.cu"],
}
WIDTH = {"check": 132, "facts": 164, "profile": 164, "verify": 132}
VERIFIED = ("benchmarks/results/verify_report.json", "verify kernel.cu kernel_padded.cu")
"""A report that a GPU made, drawn where there is none, and the command that made it."""
PAGE = ["profile", "csrc_samples/memory/transpose_tiled/kernel.cu", "--format", "html"]
"""Shown as a browser draws it, where there is one."""
MACHINE_CODE = """\
__device__ float weight(float x) {
    return 0.1 * x + 1;
}

__global__ void blend(const float4* __restrict__ in, float4* out,
                      const int* at, float t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = in[i];
    float w = weight(t);
    float part[16];
    for (int j = 0; j < 4; j++) part[at[j] & 15] = v.y * j;
    v.x = part[i & 15] * w;
    out[i] = v;
}
"""
"""A kernel with a literal that makes it compute in double precision, wide accesses, and an array in local memory."""
_WEB_FONTS = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)


def main() -> int:
    target = ROOT / "docs" / "pictures"
    target.mkdir(parents=True, exist_ok=True)
    for name, arguments in PICTURES.items():
        run = subprocess.run(
            [sys.executable, "-m", "warpwright.cli", *arguments],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
            env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH[name])},
        )
        if run.returncode == 2:
            print(run.stderr, file=sys.stderr)
            return 2
        _draw(target, name, run.stdout, " ".join(arguments))
    results, command = VERIFIED
    os.environ["COLUMNS"] = str(WIDTH["verify"])
    _draw(target, "verify", report_text(json.loads((ROOT / results).read_text(encoding="utf-8"))["report"]), command)
    _page(target / "profile-page.png", PAGE, ROOT)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "blend.cu").write_text(MACHINE_CODE, encoding="utf-8")
        _page(target / "machine-code.png", ["sass", "blend.cu", "--format", "html"], Path(folder), "#line=0:14")
    return 0


def _draw(target: Path, name: str, text: str, arguments: str) -> None:
    console = Console(record=True, width=WIDTH[name], file=io.StringIO())
    console.print(Text.from_ansi(text.rstrip("\n")))
    picture = console.export_svg(title=f"warpwright {arguments}", unique_id=f"warpwright-{name}")
    picture = _WEB_FONTS.sub("", picture).replace("<svg ", '<svg xml:space="preserve" ', 1)
    (target / f"{name}.svg").write_text(picture, encoding="utf-8")
    print(f"docs/pictures/{name}.svg")


def _page(target: Path, arguments: list[str], cwd: Path, fragment: str = "") -> None:
    """Draw the page that a command writes, at a place in it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print(f"no Chromium on PATH: {target.name} is left as it is")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        subprocess.run([sys.executable, "-m", "warpwright.cli", *arguments, "--output", page], cwd=cwd, check=True)
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1440,860"]
        subprocess.run(
            [browser, *options, f"--screenshot={target}", page.as_uri() + fragment], check=True, capture_output=True
        )
    print(f"docs/pictures/{target.name}")


if __name__ == "__main__":
    sys.exit(main())
