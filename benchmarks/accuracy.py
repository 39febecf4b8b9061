"""How far the facts agree with Nsight Compute, on every set of counters in labels/.

    git clone https://github.com/zjin-lcf/HeCBench && git -C HeCBench checkout f27000a51
    python benchmarks/accuracy.py HeCBench/src

The facts are asked from the source text alone: `warpwright facts --format json` with the program's .cu files, no flags,
no profile. line_figures.py defines what is compared, miss_classes.py how a miss is explained, labels/README.md how the
counters were made. Writes benchmarks/results/accuracy.json and, from it, docs/accuracy.md; with label files named, it
prints the figures alone.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gzip
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accuracy_page import page
from line_figures import counted_lines, figures, said_lines, sources_of, tally
from miss_classes import Miss, misses, summary
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

HERE = Path(__file__).resolve().parent
LABELS = HERE / "labels"
RESULT = HERE / "results" / "accuracy.json"
PAGE = HERE.parent / "docs" / "accuracy.md"
COMMIT = "f27000a51"
GET = f"git clone https://github.com/zjin-lcf/HeCBench && git -C HeCBench checkout {COMMIT}"
COUNTERS = "one NVIDIA H200, nvcc 13.0.88, Nsight Compute 2025.3.1"
SECONDS = 120.0


def ask(folder: Path) -> tuple[dict[str, Any], str]:
    """The facts of one program and, where there are none, why."""
    files = sorted(str(path) for path in folder.rglob("*.cu"))
    command = [sys.executable, "-m", "warpwright.cli", "facts", "--format", "json", *files]
    nothing: dict[str, Any] = {"kernels": []}
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        return json.loads(run.stdout), ""
    except subprocess.TimeoutExpired:
        return nothing, f"no answer in {SECONDS:.0f} s"
    except json.JSONDecodeError:
        return nothing, (run.stderr or run.stdout)[-200:].strip()


def measure(labels: Path, sources: Path, jobs: int, progress: Progress) -> dict[str, Any]:
    """The figures and the misses of one label file."""
    programs = json.loads(gzip.decompress(labels.read_bytes()))
    name = labels.name.removesuffix(".json.gz")
    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = pool.map(ask, [sources / program["prog"] for program in programs])
        answers = list(progress.track(asked, total=len(programs), description=name))
    seconds = time.perf_counter() - started
    tallies, found, failed = [], list[Miss](), []
    for program, (facts, problem) in zip(programs, answers, strict=True):
        if problem:
            failed.append(f"{program['prog']}: {problem}")
        counted, said = counted_lines(program, sources_of(sources / program["prog"])), said_lines(facts)
        tallies.append(tally(counted, said))
        found += misses(program, facts, counted, said)
    return {
        "programs": len(programs),
        "failed": failed,
        "seconds": round(seconds, 1),
        "figures": figures(tallies),
        "misses": summary(found, show_lines="blind" not in name),
    }


def not_there(labels: Path, sources: Path) -> list[str]:
    """The programs of a label file whose folder the sources lack."""
    programs = json.loads(gzip.decompress(labels.read_bytes()))
    return [program["prog"] for program in programs if not (sources / program["prog"]).is_dir()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="SOURCES", help=f"HeCBench's src folder at commit {COMMIT}")
    parser.add_argument("labels", type=Path, nargs="*", help="measure these label files only, and write nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at once (default: processors)")
    arguments = parser.parse_args()
    labels = arguments.labels or sorted(LABELS.glob("*.json.gz"))
    if absent := [name for path in labels for name in not_there(path, arguments.sources)]:
        print(
            f"accuracy: {arguments.sources} lacks {len(absent)} programs ({absent[0]}); get them: {GET}",
            file=sys.stderr,
        )
        return 2
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        measured = [measure(path, arguments.sources, arguments.jobs, progress) for path in labels]
    sets = {path.name.removesuffix(".json.gz"): one for path, one in zip(labels, measured, strict=True)}
    result = {
        "command": "python benchmarks/accuracy.py HeCBench/src",
        "sources": f"github.com/zjin-lcf/HeCBench at {COMMIT}",
        "counters": COUNTERS,
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count(), "jobs": arguments.jobs},
        "versions": {name: version(name) for name in ("warpwright", "tree-sitter", "tree-sitter-cuda")}
        | {"python": platform.python_version()},
        "sets": sets,
    }
    if not arguments.labels:
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(result), encoding="utf-8")
    print(json.dumps({name: one["figures"] | {"seconds": one["seconds"]} for name, one in sets.items()}, indent=1))
    return 1 if any(one["failed"] for one in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
