"""Does the emulator find the races that compute-sanitizer finds? One `__syncthreads()` is deleted at a time.

    python benchmarks/emulator_races.py --write

Needs nvcc, a CUDA GPU and compute-sanitizer. Takes every `__syncthreads()` of the samples and of
tests/emulator/kernels: the file without it is run by the emulator, and on the GPU under `compute-sanitizer --tool
racecheck`, on the same bytes. Each file is run as it is too. Writes emulator_races.json with both lists for each
deletion; exits 1 where racecheck reports a race of which the emulator finds none, or the emulator finds one in a whole
file. `--emulate` leaves the GPU out, and `racecheck` is null.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emulator_gpu import device_name, lay_out
from emulator_jobs import ROOT, Job, files_of, launched
from warpwright import __version__
from warpwright.emulator.profile import own_files
from warpwright.emulator.report import faults_of
from warpwright.facts.analyze import analyze
from warpwright.facts.profile import FaultKind
from warpwright.syntax.source import read_include, read_source

RESULT = ROOT / "benchmarks" / "results" / "emulator_races.json"
RACES = {FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE, FaultKind.MISSING_SYNCWARP}
BARRIER = re.compile(r"\b__syncthreads\s*\(\s*\)\s*;")
SECONDS = 300
_REPORT = re.compile(
    r"Race reported between (\w+) access at [^\n]*?(?: in ([^\s:]+):(\d+))?\s*\n"
    r"=+\s+and (\w+) access at [^\n]*?(?: in ([^\s:]+):(\d+))?\s*(?:\[|\n)"
)

Row = dict[str, Any]


def without_one(text: str) -> Iterator[tuple[int, str]]:
    """The line of each barrier in turn, and the text without it, with all lines in their places.

    >>> [(line, short.split()) for line, short in without_one("__syncthreads();\\n//__syncthreads();\\n")]
    [(1, [';', '//__syncthreads();'])]
    """
    for found in BARRIER.finditer(text):
        start = text.rfind("\n", 0, found.start()) + 1
        if "//" not in text[start : found.start()]:
            yield text.count("\n", 0, found.start()) + 1, text[: found.start()] + ";" + text[found.end() :]


def emulated(job: Job) -> list[Row]:
    """The races that the emulator found."""
    faults = faults_of(job.program, job.result, own_files(job.unit))
    rows = [
        {"kind": fault.kind.value, "line": fault.line, "other": fault.other.line if fault.other else None}
        for fault in faults
        if fault.kind in RACES
    ]
    return sorted(rows, key=str)


def racecheck(jobs: list[Job], sanitizer: str) -> list[Row]:
    """The races that compute-sanitizer reports of these launches."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(jobs, Path(folder))
        launcher = Path(__file__).with_name("gpu_launch.py")
        command = [sanitizer, "--tool", "racecheck", "--racecheck-report", "analysis", "--print-limit", "1000"]
        command = [*command, sys.executable, str(launcher), folder]
        try:
            finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{jobs[0].name}: compute-sanitizer did not end within {SECONDS} s") from None
    text = finished.stdout + finished.stderr
    if "RACECHECK SUMMARY" not in text:
        raise SystemExit(f"compute-sanitizer did not come to its end: {text[-1000:]}")
    return races_in(text)


def races_in(text: str) -> list[Row]:
    """What compute-sanitizer printed, as data; a line is None where it names none.

    >>> races_in("========= Error: Race reported between Write access at k(int *)+0x90 in /x/a.cu:7\\n"
    ...          "=========     and Read access at k(int *)+0x70 in /x/a.cu:5 [64 hazards]\\n")
    [{'first': 'Write', 'line': 7, 'second': 'Read', 'other': 5}]
    """
    rows: list[Row] = []
    for first, _, line, second, _, other in _REPORT.findall(text):
        row = {
            "first": first,
            "line": int(line) if line else None,
            "second": second,
            "other": int(other) if other else None,
        }
        if row not in rows:
            rows.append(row)
    return rows


def lines_of(job: Job) -> range:
    """The lines of a kernel."""
    span, data = job.kernel.span, job.kernel.source.data
    return range(data.count(b"\n", 0, span.start) + 1, data.count(b"\n", 0, span.end) + 2)


def jobs_of(path: Path, only: str | None = None) -> list[Job]:
    """The kernels of a file that can be run, or one of them, each launched once in the emulator."""
    unit = analyze(read_source(path), read_include)
    jobs = (launched(unit, kernel, {}) for kernel in unit.defined_kernels if only in (None, kernel.name))
    return [job for job in jobs if isinstance(job, Job)]


def cases(path: Path) -> Iterator[tuple[int | None, list[Job]]]:
    """The file as it is (None), and without the barrier of each line: the kernels that it concerns, emulated."""
    whole = jobs_of(path)
    yield None, whole
    for line, text in without_one(path.read_text(encoding="utf-8")):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.parent.name
            shutil.copytree(path.parent, copy)
            (copy / path.name).write_text(text, encoding="utf-8")
            concerned = next((job.kernel.name for job in whole if line in lines_of(job)), None)
            yield line, jobs_of(copy / path.name, concerned)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/emulator_races.json")
    parser.add_argument("--emulate", action="store_true", help="run the emulator's half only, without a GPU")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = files_of(options.files)
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None and not options.emulate:
        print("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for path in files:
        for line, jobs in cases(path):
            theirs = None if options.emulate or sanitizer is None or not jobs else racecheck(jobs, sanitizer)
            for job in jobs:
                found = emulated(job)
                rows.append(
                    {
                        "file": str(path.resolve().relative_to(ROOT)),
                        "kernel": job.kernel.name,
                        "deleted_barrier": line,
                        "shape": dict(job.case.shape),
                        "emulated": found,
                        "racecheck": theirs,
                    }
                )
                words = "whole" if line is None else f"without line {line}"
                count = "-" if theirs is None else len(theirs)
                print(f"{job.name:36} {words:18} emulated {len(found):2}, racecheck {count}")
    missed = [r for r in rows if r["racecheck"] and not r["emulated"]]
    alarms = [r for r in rows if r["deleted_barrier"] is None and r["emulated"]]
    deletions = [r for r in rows if r["deleted_barrier"] is not None]
    summary = {
        "deletions": len(deletions),
        "found_by_the_emulator": sum(bool(r["emulated"]) for r in deletions),
        "found_by_racecheck": None if options.emulate else sum(bool(r["racecheck"]) for r in deletions),
        "missed_by_the_emulator": len(missed),
        "reports_on_whole_files": len(alarms),
    }
    print(summary)
    if options.write:
        device = platform.processor() or platform.machine() if options.emulate else device_name()
        result = {
            "command": "python benchmarks/emulator_races.py --write" + (" --emulate" if options.emulate else ""),
            "warpwright": __version__,
            "device": device,
            "summary": summary,
            "rows": rows,
        }
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if missed or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
