"""How long `warpwright check one.cu` takes from a cold start, as a whole process: the median of several.

    python benchmarks/check_latency.py [--runs 15] [--write]

`--write` records the result, with hardware and versions, in benchmarks/results/check_latency.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from hardware import processor

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "check_latency.json"
SAMPLE = ROOT / "csrc_samples" / "memory" / "transpose_tiled" / "kernel.cu"
LIMIT_SECONDS = 0.5


def measure(command: list[str], runs: int) -> tuple[list[float], float]:
    """Wall seconds of each run, and processor seconds of one on average: what it costs on a machine with other work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, check=False)
        seconds.append(time.perf_counter() - start)
        if done.returncode not in (0, 1):
            sys.exit(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()

    script = Path(sys.executable).parent / "warpwright"
    measure([str(script), "check", str(SAMPLE)], 1)  # compiles the modules to bytecode, once for each installation
    seconds, processor_seconds = measure([str(script), "check", str(SAMPLE)], options.runs)
    result = {
        "what": "wall time of a whole process, from start to exit",
        "command": f"warpwright check {SAMPLE.relative_to(ROOT)}",
        "runs": options.runs,
        "median_s": round(statistics.median(seconds), 4),
        "min_s": round(min(seconds), 4),
        "max_s": round(max(seconds), 4),
        "processor_s": round(processor_seconds, 4),
        "load_average": round(os.getloadavg()[0], 1),
        "limit_s": LIMIT_SECONDS,
        "interpreter_alone_median_s": round(statistics.median(measure([sys.executable, "-c", "pass"], 5)[0]), 4),
        "hardware": processor(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("warpwright", "tree-sitter", "tree-sitter-cuda", "click")},
        },
    }
    print(json.dumps(result, indent=2))
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(statistics.median(seconds) > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
