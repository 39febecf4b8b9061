"""What a person at VS Code waits for, in a real VS Code with the packed extension:

- the extension's activation, in a new window;
- from opening a 500-line file to its first findings, in a new window in which nothing of warpwright runs yet, and in
  one of a folder with CUDA files, for which the server starts before; and from opening it until VS Code shows it;
- a hover on an index, from the extension host to the server and back;
- from a key to the first frame in which the squiggles that it changes are changed, seen in the page;
- and the size of the .vsix, whose limit is that of tools/vsix_check.py.

    python benchmarks/vscode_latency.py [--windows 10] [--hovers 300] [--keys 40] [--write]

VS Code and Chromium are those of `tools/install_vscode.py`; the file is that of `edit_latency.py`, at half its length.
`--write` records the result, with hardware and versions, in benchmarks/results/vscode_latency.json. Ends with 1 where a
limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edit_latency import figures, long_file
from hardware import processor

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "vscode_latency.json"
EDITOR = ROOT / ".build" / "vscode"
CLIENT = ROOT / "client-vscode"
TARGET = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"
LINES = 500
# Where the cursor stands, and a key that takes a bank conflict away, which Backspace brings back.
SPOTS = (("float edited_tile[32][32", "];", "1"), ("columns[inner][threadIdx.x * 8", " + i];", "1"))
LIMITS_MS = {"activation": 300.0, "opened": 1000.0, "project": 1000.0, "hover": 50.0, "squiggles": 150.0}
WHAT = {
    "activation": "activation of the extension, its code loaded",
    "opened": "opening a file of 500 lines to its first findings, cold",
    "project": "opening it in a folder with CUDA files to its first findings, in a new window",
    "shown": "opening it until VS Code shows it",
    "hover": "hover",
    "squiggles": "key to changed squiggles in the page",
}
Json = dict[str, Any]


def packed(folder: Path) -> tuple[Path, int]:
    """The extension as it is installed, and the bytes of its package."""
    subprocess.run([sys.executable, "tools/vsix.py", "--target", TARGET, "--out", str(folder)], cwd=ROOT, check=True)
    package = folder / f"warpwright-{TARGET}.vsix"
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    return folder / "extension", package.stat().st_size


def measured(extension: Path, folder: Path, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of each."""
    text = long_file(LINES)
    file = folder / "kernels" / "long.cu"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    spots = [
        {"line": text[: text.index(f"{before}{after}")].count("\n") + 1, "before": after, "key": key}
        for before, after, key in SPOTS
    ]
    plan = {
        "file": str(file),
        "windows": options.windows,
        "hovers": options.hovers,
        "keys": options.keys,
        "spots": spots,
    }
    command = ["node", "test/measure.mjs", str(EDITOR), str(extension), json.dumps(plan)]
    done = subprocess.run(command, cwd=CLIENT, stdout=subprocess.PIPE, text=True, check=True)
    milliseconds: dict[str, list[float]] = json.loads(done.stdout)
    return {name: [each / 1000 for each in values] for name, values in milliseconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--hovers", type=int, default=300)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.environ["PATH"] = f"{EDITOR / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["WARPWRIGHT_TEST_PYTHON"] = sys.executable
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        extension, size = packed(Path(name))
        seconds = measured(extension, Path(name), options)
    counts = f"--windows {options.windows} --hovers {options.hovers} --keys {options.keys}"
    found = {WHAT[each]: figures(values) for each, values in seconds.items()}
    result: Json = {
        "what": "milliseconds that a person at VS Code waits",
        "command": f"python benchmarks/vscode_latency.py {counts} --write",
        "measured": found,
        "vsix_bytes": size,
        "limit_ms, p95": {WHAT[each]: limit for each, limit in LIMITS_MS.items()},
        "load_average_before": round(load, 1),
        "hardware": processor(),
        "versions": {
            "vscode": json.loads((EDITOR / "node_modules/code-server/lib/vscode/package.json").read_text())["version"],
            "python": platform.python_version(),
            "warpwright": version("warpwright"),
        },
    }
    print(json.dumps(result, indent=2))
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    missed = [each for each, limit in LIMITS_MS.items() if found[WHAT[each]]["p95_ms"] > limit]
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
