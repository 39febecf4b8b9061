"""Does `warpwright trace` name what a program is bound by, the line, and a cure that gains what was estimated?

    python benchmarks/trace_programs.py [--only NAME...] [--device cpu|cuda] --out benchmarks/results

Each program in trace_programs/ says in comments what it needs (`# device`), what it is bound by, which proposal is its
cure, and marks its line with `# here` (a program of several such lines is right with any). It is traced, then its slow
and its cured version are timed without a profiler. Writes trace_programs_cpu.json for those that need no GPU, and
trace_programs_cuda.json on a machine that has one, again after each program. An estimate is right where it and the
measured gain lie within a factor of 1.5.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hardware import gpu_run, processor

PROGRAMS = Path(__file__).parent / "trace_programs"
FACTOR = 1.5
_SECONDS = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    ran = gpu_run() if arguments.device == "cuda" else {"command": " ".join(["python", *sys.argv])}
    rows: list[dict[str, Any]] = []
    for path in sorted(PROGRAMS.glob("[a-z]*.py")):
        expected = said(path)
        if (
            not expected
            or expected["device"] != arguments.device
            or (arguments.only and path.stem not in arguments.only)
        ):
            continue
        rows.append(measured(path, expected))
        print(json.dumps(rows[-1]), flush=True)
        if arguments.out:
            result = {**ran, "processor": processor(), "summary": summary(rows), "programs": rows}
            name = f"trace_programs_{arguments.device}.json"
            (arguments.out / name).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(summary(rows), indent=1))
    return 0


def said(path: Path) -> dict[str, str]:
    """What a program says of itself."""
    return dict(re.findall(r"^# (device|bound|proposal): (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE))


def marked(path: Path) -> list[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("# here")]


def measured(path: Path, expected: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"program": path.stem, "expected": expected["bound"], "lines": marked(path)}
    command = [sys.executable, "-m", "warpwright.cli", "trace", "--unconfined", "--seconds", "120", "--format", "json"]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        return {**row, "error": done.stderr.strip().splitlines()[-1:]}
    trace = json.loads(done.stdout)
    row |= {"bound": trace["bound_by"], "right_bound": trace["bound_by"] == expected["bound"]}
    row["shares"] = {cause: round(share, 3) for cause, share in trace["shares"].items()}
    named = [_place(each) for each in trace["lines"][:1]]
    proposal = next((each for each in trace["proposals"] if each["kind"] == expected["proposal"]), None)
    if proposal:
        named += [_place(each) for each in proposal["places"][:1]]
    right = {(path.name, line) for line in row["lines"]}
    row |= {"named": named, "right_line": not right or bool(right & set(named))}
    if expected["proposal"] == "none":
        return row
    slow, cured = (_timed(path, version) for version in ("slow", "cured"))
    row |= {"slow_ms": round(slow * 1e3, 2), "cured_ms": round(cured * 1e3, 2), "gain": round(slow / cured, 2)}
    row["estimate"] = round(proposal["gain"], 2) if proposal else None
    row["right_gain"] = bool(proposal) and 1 / FACTOR <= proposal["gain"] / (slow / cured) <= FACTOR
    return row


def _place(each: Mapping[str, Any]) -> tuple[str, int]:
    return Path(each["file"]).name, each["line"]


def _timed(path: Path, version: str) -> float:
    command = [sys.executable, str(path), "--time", version]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return float(done.stdout.split()[-1])


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    >>> summary([{"right_bound": True, "right_line": False, "right_gain": True}, {"error": "no"}])
    {'programs': 2, 'right_bound': 1, 'right_line': 0, 'cured': 1, 'right_gain': 1}
    """
    counts = {name: sum(row.get(name, False) for row in rows) for name in ("right_bound", "right_line")}
    cured = [row for row in rows if "right_gain" in row]
    return {
        "programs": len(rows),
        **counts,
        "cured": len(cured),
        "right_gain": sum(row["right_gain"] for row in cured),
    }


if __name__ == "__main__":
    sys.exit(main())
