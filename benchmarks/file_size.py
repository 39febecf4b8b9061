"""How time and memory of `warpwright check` grow with the size of a file: they should grow as its lines do.

    python benchmarks/file_size.py [--lines 1000,2000,5000,10000,20000] [--runs 3] [--write]

A file of so many lines is the file of benchmarks/edit_latency.py again and again, each time under other names. A run is
a process of its own; the fastest of several counts, for the machine does other things too. `--write` records the result
in benchmarks/results/file_size.json. The exit status is 1 where the largest file takes more than twice as long for a
line, or more memory for a line, than the smallest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edit_latency import long_file, processor

RESULT = Path(__file__).resolve().parent / "results" / "file_size.json"
LINES = "1000,2000,5000,10000,20000"
COMMAND = ["-m", "warpwright.cli", "check", "--format", "json"]
MOST_GROWTH = 2.0


def file_of(lines: int) -> str:
    """So many lines: copies of one file, each with its own names of functions, types and constants."""
    one = long_file()
    defined = r"^(?:__global__ void|void|int|constexpr int|struct|#define) +(\w+)"
    names = "|".join(sorted(set(re.findall(defined, one, re.MULTILINE)), key=len, reverse=True))
    copies = -(-lines // one.count("\n"))
    parts = [re.sub(rf"\b({names})\b", rf"\1_{copy}", one) for copy in range(copies)]
    return "\n".join("".join(parts).splitlines()[:lines]) + "\n"


def check(path: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of one run."""
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *COMMAND, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"check failed with status {status}")
    return time.perf_counter() - before, usage.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", default=LINES)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.cu"
        path.write_text("", encoding="utf-8")
        start, base = (min(values) for values in zip(*(check(path) for _ in range(options.runs)), strict=True))
        rows: list[dict[str, Any]] = []
        for lines in map(int, options.lines.split(",")):
            path.write_text(file_of(lines), encoding="utf-8")
            seconds, peak = (min(values) for values in zip(*(check(path) for _ in range(options.runs)), strict=True))
            row = {
                "lines": lines,
                "seconds": round(seconds, 2),
                "peak_mb": round(peak, 1),
                "ms_per_line": round(1000 * (seconds - start) / lines, 3),
                "kb_per_line": round(1024 * (peak - base) / lines, 2),
            }
            rows.append(row)
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    growth = {name: round(rows[-1][name] / rows[0][name], 2) for name in ("ms_per_line", "kb_per_line")}
    print(f"an empty file: {start:.2f} s, {base:.0f} MB; from the smallest to the largest: {growth}")
    result = {
        "what": "warpwright check of files that hold the same kernels again and again",
        "command": "python benchmarks/file_size.py",
        "empty_file": {"seconds": round(start, 2), "peak_mb": round(base, 1)},
        "measured": rows,
        "growth_per_line": growth,
        "hardware": processor(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": {"python": platform.python_version(), "warpwright": version("warpwright")},
    }
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(max(growth.values()) > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
