"""Of the fixes that `warpwright check` announces in real programs, how many does `warpwright fix` deliver?

    python benchmarks/fix_promises.py CHECKOUT... [--files N] [--seconds S] --out benchmarks/results

Takes N files with kernels, evenly spaced in the order of their names, and works on a copy of the checkouts: what
`check` announces, then `fix --write` for at most S seconds, then `check` again. A finding that announced a fix and is
gone from what `fix` wrote is delivered; safe fixes and those that may change results (`--unsafe`) are counted apart.
Nothing was compiled or verified before: caches and history start empty. Beside the seconds on the wall are those of
the processors, compiler and runs included, which other work on the machine does not change. Modules are read as `pip
install` leaves them, compiled. Writes fix_promises.json, again after each file. No text of a program is in this
repository.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from warpwright import __version__

Key = tuple[str, str]  # rule, kernel


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="+")
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120, help="for `fix` of one file")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where fix_promises.json is written")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        _start_afresh(Path(scratch))
        copies = [_copied(root, Path(scratch)) for root in arguments.checkouts]
        files = _spaced([path for root in copies for path in _with_kernels(root)], arguments.files)
        for path in files:
            results.append(_measured(path, arguments.seconds))
            print(json.dumps(results[-1]), flush=True)
            if arguments.out:
                text = json.dumps(_report(results), indent=1) + "\n"
                (arguments.out / "fix_promises.json").write_text(text, encoding="utf-8")
    if not results:
        print("fix_promises: no .cu file with a kernel there", file=sys.stderr)
        return 2
    print(json.dumps(_report(results)["total"], indent=1))
    return 0


def _start_afresh(scratch: Path) -> None:
    """What is compiled and kept from here on starts empty; modules are compiled once, by a first run."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name, folder in (
        ("PYTHONPYCACHEPREFIX", "modules"),
        ("WARPWRIGHT_CACHE_DIR", "cache"),
        ("WARPWRIGHT_DATA_DIR", "data"),
    ):
        os.environ[name] = str(scratch / folder)
    file = scratch / "first.cu"
    file.write_text(_FIRST, encoding="utf-8")
    _fix(file, 120)


def _copied(root: Path, scratch: Path) -> Path:
    copy = Path(shutil.copytree(root, scratch / root.resolve().name, ignore=_GIT, ignore_dangling_symlinks=True))
    (copy / ".git").mkdir()  # what tells where a project ends
    return copy


def _with_kernels(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*.cu")) if b"__global__" in path.read_bytes()]


def _spaced(files: list[Path], wanted: int) -> list[Path]:
    """
    >>> _spaced([Path(name) for name in "abcdef"], 3) == [Path("a"), Path("c"), Path("e")]
    True
    """
    taken = min(wanted, len(files))
    return [files[place * len(files) // taken] for place in range(taken)]


def _measured(file: Path, seconds: float) -> dict[str, Any]:
    before = _check(file)
    started, spent = time.perf_counter(), _processor_seconds()
    attempts, stopped = _fix(file, seconds) if any(row["fixes"] for row in before) else ([], False)
    took, spent = time.perf_counter() - started, _processor_seconds() - spent
    after = _check(file)
    announced = {safe: _announced(before, safe=safe) for safe in (True, False)}
    left = Counter(_key(row) for row in after)
    had = Counter(_key(row) for row in before)
    applied = {(one["rule"], one["kernel"]) for one in attempts if one["applied"]}
    delivered = {
        safe: sum(min(count, max(had[key] - left[key], 0)) for key, count in counts.items() if key in applied)
        for safe, counts in announced.items()
    }
    return {
        "file": "/".join(file.parts[-3:]),
        "findings": len(before),
        "rules": dict(Counter(row["rule"] for row in before)),
        "announced": {"safe": announced[True].total(), "unsafe": announced[False].total()},
        "delivered": {"safe": delivered[True], "unsafe": delivered[False]},
        "applied": sum(one["applied"] for one in attempts),
        "seconds": round(took, 1),
        "processor_seconds": round(spent, 1),
        "stopped": stopped,
        "refused": [f"{one['rule']}: {one['rewrite']}: {one['reason']}" for one in attempts if not one["applied"]],
    }


def _processor_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _announced(rows: Iterable[Mapping[str, Any]], *, safe: bool) -> Counter[Key]:
    return Counter(_key(row) for row in rows if row["fixes"] and any(f["safe"] for f in row["fixes"]) is safe)


def _key(row: Mapping[str, Any]) -> Key:
    return row["rule"], row["kernel"]


def _check(file: Path) -> list[dict[str, Any]]:
    run = subprocess.run([*_COMMAND, "check", "--format", "json", str(file)], capture_output=True, check=False)
    rows: list[dict[str, Any]] = json.loads(run.stdout or b"[]")
    return [row for row in rows if Path(row["file"]) == file]


def _fix(file: Path, seconds: float) -> tuple[list[dict[str, Any]], bool]:
    """What was tried, and whether it was stopped, as a user stops it."""
    command = [*_COMMAND, "fix", "--unsafe", "--write", "--format", "json", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        try:
            out, _ = run.communicate(timeout=seconds)
            stopped = False
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate()
            stopped = True
    files: list[dict[str, Any]] = json.loads(out or b"[]")
    return [attempt for one in files for attempt in one["fixes"]], stopped


def _report(results: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = ("safe", "unsafe")
    announced, delivered = (
        {kind: sum(one[name][kind] for one in results) for kind in kinds} for name in ("announced", "delivered")
    )
    both = sum(announced.values())
    fixed = [one for one in results if sum(one["announced"].values())]
    medians = {
        name: round(median(one[name] / sum(one["announced"].values()) for one in fixed), 1) if fixed else 0.0
        for name in ("seconds", "processor_seconds")
    }
    reasons = Counter(re.sub(r"\d+|`[^`]*`|/\S+", "_", reason) for one in results for reason in one["refused"])
    return {
        "command": f"python benchmarks/fix_promises.py CHECKOUT... --files {len(results)}",
        "versions": {"warpwright": __version__, "python": platform.python_version()},
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count(), "load": round(os.getloadavg()[1], 1)},
        "total": {
            "files": len(results),
            "findings": sum(one["findings"] for one in results),
            "rules": dict(sum((Counter(one["rules"]) for one in results), Counter[str]()).most_common()),
            "announced": announced,
            "delivered": delivered,
            "delivered_percent": round(100 * sum(delivered.values()) / both) if both else 100,
            "median_of_a_finding": medians,
            "stopped": sum(one["stopped"] for one in results),
            "refused": dict(reasons.most_common()),
        },
        "files": results,
    }


_FIRST = "__global__ void k(float* a) { a[threadIdx.x] = 0; }\nvoid f(float* a) { k<<<1, 32>>>(a); }\n"
_GIT = shutil.ignore_patterns(".git")
_COMMAND = (sys.executable, "-m", "warpwright.cli")

if __name__ == "__main__":
    sys.exit(main())
