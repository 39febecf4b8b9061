"""Does `warpwright trace` name what a program is bound by, the line, and a cure that gains what was estimated?

    python benchmarks/trace_programs.py [--only NAME...] [--device cpu|cuda] [--jobs N] --out benchmarks/results
    python benchmarks/trace_programs.py --again DIR        judge what was recorded with --keep DIR once more

Each program in the pages of trace_programs/ (Python, or CUDA C++) says in comments what it needs (`# device`), what it
is bound by, which proposal is its cure, and marks its line with `# here` (a program of several such lines is right with
any). It is traced, then its slow and its cured version are timed without a profiler. Writes trace_programs_cpu.json for
those that need no GPU, and trace_programs_cuda.json on a machine that has one, again after each program. An estimate is
right where it and the measured gain lie within a factor of 1.5.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hardware import gpu_run, processor
from warpwright.cli.trace import cuda_toolkit
from warpwright.progress import never_cancelled
from warpwright.timeline.model import Trace, TraceError
from warpwright.timeline.program import compiled_program, record_program
from warpwright.timeline.record import Recording, record
from warpwright.timeline.report import report_json, report_of

PAGES = Path(__file__).parent / "trace_programs"
PROGRAMS = Path(__file__).parent.parent / ".build" / "trace_programs"
"""Where they are written to, beside what they share."""
_PROGRAM = re.compile(r"^## (\S+)\n\n```(?:python|cuda)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FACTOR = 1.5
_SECONDS = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="so many start side by side; one at a time is measured")
    parser.add_argument("--seconds", type=float, default=86400.0, help="begin no program later")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was recorded there")
    parser.add_argument("--again", type=Path, metavar="DIR", help="judge what --keep kept, with the times in --out")
    parser.add_argument("--out", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    paths = sorted(written())
    if arguments.again:
        return again(arguments)
    ran = gpu_run() if arguments.device == "cuda" else {"command": " ".join(["python", *sys.argv])}
    expected = {path: said(path) for path in paths}
    paths = [path for path, each in expected.items() if each.get("device") == arguments.device]
    paths = [path for path in paths if not arguments.only or path.stem in arguments.only]
    rows: list[dict[str, Any]] = []
    with tempfile.NamedTemporaryFile() as lock, ThreadPoolExecutor(arguments.jobs) as pool:
        os.environ["WARPWRIGHT_ONE_AT_A_TIME"] = lock.name
        until = time.monotonic() + arguments.seconds

        def work(path: Path) -> dict[str, Any]:
            if time.monotonic() > until:
                return {"program": path.stem, "error": "the time was over"}
            return measured(path, expected[path], arguments.keep)

        for row in pool.map(work, paths):
            rows.append(row)
            print(json.dumps(row), flush=True)
            _write(arguments, {**ran, "processor": processor()}, rows)
    print(json.dumps(summary(rows), indent=1))
    return 0


def written() -> Iterator[Path]:
    """Each program as a file."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    for shared in PAGES.glob("_run.*"):
        shutil.copy(shared, PROGRAMS)
    for page in PAGES.glob("*.md"):
        for name, text in _PROGRAM.findall(page.read_text(encoding="utf-8")):
            (PROGRAMS / name).write_text(text, encoding="utf-8")
            yield PROGRAMS / name


def again(arguments: argparse.Namespace) -> int:
    """The rows of the result in --out anew: what was recorded and timed stays, what is said of it is today's."""
    document = json.loads((arguments.out / f"trace_programs_{arguments.device}.json").read_text(encoding="utf-8"))
    rows = []
    for row in document.pop("programs"):
        path = next(iter(PROGRAMS.glob(f"{row['program']}.*")))
        kept = arguments.again / f"{path.stem}.pickle.xz"
        recorded = pickle.loads(lzma.decompress(kept.read_bytes())) if kept.exists() else None
        rows.append(row if recorded is None else judged(path, said(path), recorded, row))
        print(json.dumps(rows[-1]), flush=True)
    document.pop("summary")
    _write(arguments, document, rows)
    print(json.dumps(summary(rows), indent=1))
    return 0


def _write(arguments: argparse.Namespace, head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    if arguments.out:
        result = {**head, "summary": summary(rows), "programs": rows}
        text = json.dumps(result, indent=1) + "\n"
        (arguments.out / f"trace_programs_{arguments.device}.json").write_text(text, encoding="utf-8")


def said(path: Path) -> dict[str, str]:
    """What a program says of itself."""
    return dict(re.findall(r"^(?:#|//) (device|bound|proposal): (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE))


def marked(path: Path) -> list[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith((" # here", " // here"))]


def measured(path: Path, expected: Mapping[str, str], keep: Path | None) -> dict[str, Any]:
    row: dict[str, Any] = {"program": path.stem}
    try:
        wanted = Recording(path, seconds=60.0, confined=False)
        is_cuda = path.suffix == ".cu"
        trace = record_program(wanted, cuda_toolkit(), never_cancelled) if is_cuda else record(wanted, never_cancelled)
        if keep:
            (keep / f"{path.stem}.pickle.xz").write_bytes(lzma.compress(pickle.dumps(trace), preset=1))
        if expected["proposal"] != "none":
            row |= dict(zip(("slow_ms", "cured_ms"), _timed(path), strict=True))
        return judged(path, expected, trace, row)
    except (TraceError, OSError, ValueError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return {**row, "error": str(said).strip().splitlines()[-1:]}


def judged(path: Path, expected: Mapping[str, str], recorded: Trace, times: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a program, from what was recorded and the times of its versions."""
    trace = report_json(report_of(recorded, path.parent))
    row: dict[str, Any] = {"program": path.stem, "expected": expected["bound"], "lines": marked(path)}
    row |= {"bound": trace["bound_by"], "right_bound": trace["bound_by"] == expected["bound"]}
    row["shares"] = {cause: round(share, 3) for cause, share in trace["shares"].items()}
    named = [_place(each) for each in trace["lines"][:1]]
    proposal = next((each for each in trace["proposals"] if each["kind"] == expected["proposal"]), None)
    if proposal:
        named += [_place(each) for each in proposal["places"][:1]]
    right = {(path.name, line) for line in row["lines"]}
    row |= {"named": named, "right_line": not right or bool(right & set(named))}
    row["proposed"] = {each["kind"]: round(each["gain"], 2) for each in trace["proposals"]}
    if expected["proposal"] == "none":
        return row
    gain = times["slow_ms"] / times["cured_ms"]
    row |= {"slow_ms": times["slow_ms"], "cured_ms": times["cured_ms"], "gain": round(gain, 2)}
    row["estimate"] = round(proposal["gain"], 2) if proposal else None
    row["right_gain"] = bool(proposal) and 1 / FACTOR <= proposal["gain"] / gain <= FACTOR
    return row


def _place(each: Mapping[str, Any]) -> tuple[str, int]:
    return Path(each["file"]).name, each["line"]


def _timed(path: Path) -> list[float]:
    """Milliseconds of the slow and the cured version."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(path)]
        if path.suffix == ".cu":
            command = [str(compiled_program(path, Path(folder), cuda_toolkit().nvcc))]
        done = subprocess.run([*command, "--time"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    return [round(float(each) * 1e3, 3) for each in done.stdout.split()[-2:]]


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
