"""`warpwright check` over a large tree of real programs: does it end without a crash, in what time, with what findings?

    python benchmarks/check_many.py HeCBench/src --glob '*-cuda' --out benchmarks/results

HeCBench is github.com/zjin-lcf/HeCBench; the committed result is for commit f27000a51.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from warpwright import __version__


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--glob", default="*", help="which folders of ROOT")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where check_many.json is written")
    arguments = parser.parse_args()
    folders = sorted(str(path) for path in arguments.root.glob(arguments.glob) if any(path.rglob("*.cu")))
    files = sum(1 for folder in folders for _ in Path(folder).rglob("*.cu"))
    if not files:
        print(f"check_many: no .cu file under {arguments.root}/{arguments.glob}", file=sys.stderr)
        return 2
    started = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-m", "warpwright.cli", "check", "--format", "json", *folders],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    internal = [line for line in run.stderr.splitlines() if "Traceback" in line or "internal error" in line]
    failed_rules = [line for line in run.stderr.splitlines() if "rule" in line and "failed" in line]
    ended = run.returncode in (0, 1) and not internal and not failed_rules
    findings = json.loads(run.stdout) if ended else []
    counts = Counter(f"{row['rule']} {row['severity']}" for row in findings)
    result = {
        "command": f"python benchmarks/check_many.py HeCBench/src --glob '{arguments.glob}'",
        "versions": {"warpwright": __version__, "python": platform.python_version()},
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count()},
        "files": files,
        "exit_status": run.returncode,
        "crashes": len(internal) + len(failed_rules),
        "seconds": round(seconds, 1),
        "findings": dict(sorted(counts.items())),
    }
    print(json.dumps(result, indent=1))
    if not ended:
        print(run.stderr[-2000:], file=sys.stderr)
    if arguments.out:
        (arguments.out / "check_many.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
