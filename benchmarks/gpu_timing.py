"""Are the times right, and the verdicts made of them? Against Nsight Compute, and by asking what is known beforehand.

    PYTHONPATH=server:benchmarks python3 benchmarks/gpu_timing.py --out benchmarks/results [--parts same agreement ...]

Needs a CUDA GPU, nvcc, ncu, and a Python with torch, cuda-bindings, tree-sitter, tree-sitter-cuda and platformdirs.
Writes gpu_timing.json with the command, the hardware and the versions:

- agreement: each kernel's median time with cold and with warm caches, by the harness's stopwatch in one process and by
  Nsight Compute (`--clock-control none --cache-control none`) in another that makes the same launches;
- same: the same text compiled twice, verified 200 times: how often either side is called the winner;
- different: kernels that do some 3 % more or less of a known kind of work, verified 200 times: how often that is seen;
- candidate: the seconds that one verification takes in a warm process, with what each part of it took.

What the file holds already is kept: parts and rows can be measured one after the other.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from gpu_timing_kernels import DIFFERENT, MORE, candidate_texts, sample_sources
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.source import Source, read_include
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.names import instance_of
from warpwright.verify.harness import Gpu, close_idle, find_gpu, harness_environment, harness_python
from warpwright.verify.plan import Side, make_request
from warpwright.verify.rates import keep_rates, known_rates
from warpwright.verify.run import observe
from warpwright.verify.verify import verify

PARTS = ("candidate", "same", "different", "agreement")
Rows = Iterator[dict[str, Any]]
Named = TypeVar("Named", bound=tuple[Any, ...])
TRIES = 200
BATCH = 12
"""Kernels in one process beside Nsight Compute."""

PROCESSES = 2
"""Of each kind for the comparison with Nsight Compute, in turns: where memory lies differs from process to process, and
moves a time by some percent."""

LONG_US = 20.0
"""From which on times must agree."""


def side_of(source: Source, arch: str) -> Side:
    program = analyze(source, read_include, Assumptions(arch=arch))
    kernel = program.defined_kernels[0]
    problem = find_problem(program, kernel)
    compiled = compile_cubin(source, arch=arch)
    if not isinstance(problem, Problem) or compiled.cubin is None:
        raise SystemExit(f"{source.path}: {problem if not isinstance(problem, Problem) else compiled.reason}")
    resources = instance_of(compiled.kernels, kernel.name, problem.instance)
    assert resources is not None
    return Side(compiled.cubin, resources, problem)


def timing_request(original: Side, candidate: Side, gpu: Gpu, seed: int) -> dict[str, Any]:
    """A request that compares on one kind of values at one shape, and times at all that are to be timed."""
    request = make_request(original, candidate, seed=seed, judge="baseline", timed=True)
    cases = [{**case, "check": False} for case in request["cases"] if case["time"]]
    cases[0] |= {"check": True, "distributions": ["normal"]}
    return {**request, "cases": cases, "reference": None, "rates": dict(known_rates(gpu))}


def verdicts(pairs: Sequence[tuple[str, Source, Source]], gpu: Gpu, each: int) -> Rows:
    """Verify each pair `each` times: the verdicts, and what was measured each time."""
    for name, original, candidate in pairs:
        sides = side_of(original, gpu.arch), side_of(candidate, gpu.arch)
        statuses: dict[str, int] = {}
        ratios: list[list[float]] = []
        intervals: list[list[float]] = []
        started = time.monotonic()
        for seed in range(each):
            request = timing_request(*sides, gpu, 1000 + seed)
            observed = observe(request, progress=silent, is_cancelled=never_cancelled)
            if observed.rates:
                keep_rates(gpu, observed.rates)
            statuses[str(observed.status)] = statuses.get(str(observed.status), 0) + 1
            ratios.append([round(s.speedup, 4) for s in observed.speed])
            intervals.append([round(v, 4) for s in observed.speed for v in s.ci95])
        row = {
            "name": name,
            "tries": each,
            "statuses": statuses,
            "seconds_each": round((time.monotonic() - started) / each, 3),
            "shapes": [dict(s.shape) for s in observed.speed],
            "baseline_us": [round(s.baseline_us, 2) for s in observed.speed],
            "rounds": [s.details["rounds"] for s in observed.speed],
            "median_speedups": [round(median(r), 4) for r in zip(*ratios, strict=True)],
            "speedups": ratios,
            "intervals": intervals,
        }
        print(f"  {name:<34} {statuses} {row['median_speedups']} {row['baseline_us']} us {row['seconds_each']} s")
        sys.stdout.flush()
        yield row


def agreement(sources: Sequence[tuple[str, Source]], gpu: Gpu) -> Rows:
    """Every kernel at every shape that is timed: the stopwatch's medians, Nsight Compute's and their ratio."""
    for start in range(0, len(sources), BATCH):
        yield from agreement_of(sources[start : start + BATCH], gpu)


def agreement_of(sources: Sequence[tuple[str, Source]], gpu: Gpu) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        requests, names = [], []
        for name, source in sources:
            side = side_of(source, gpu.arch)
            requests.append(timing_request(side, side, gpu, 7))
            names.append(name)
        plan, log = Path(folder) / "requests.json", Path(folder) / "ncu.csv"
        plan.write_text(json.dumps(requests), encoding="utf-8")
        child = [harness_python(), str(Path(__file__).with_name("gpu_timing_launches.py")), str(plan)]
        ncu = ["ncu", "--clock-control", "none", "--cache-control", "none", "--metrics", "gpu__time_duration.sum"]
        kernels = "|".join(sorted({launch["function"] for r in requests for launch in r["baseline"]["launches"]}))
        ncu += ["--kernel-name-base", "mangled", "-k", f"regex:^({kernels})$", "--csv", "--log-file", str(log)]
        ours, theirs = [], []
        for _ in range(PROCESSES):
            ours.append(run_child(child))
            launched = run_child([*ncu, *child])
            durations = durations_of(log)
            theirs.append([by_caches(row["launches"], durations) for row in launched])
    for place, first in enumerate(ours[0]):
        row: dict[str, Any] = {"name": names[first["request"]], "shape": first["shape"]}
        for caches in ("cold", "warm"):
            mine = [median(process[place][caches]) for process in ours]
            other = [median(process[place][caches]) for process in theirs]
            row[caches] = {
                "us": round(median(mine), 3),
                "ncu_us": round(median(other), 3),
                "ratio": round(median(mine) / median(other), 4),
                "us_by_process": [round(v, 3) for v in mine],
                "ncu_us_by_process": [round(v, 3) for v in other],
            }
        cells = " ".join(
            f"{c} {row[c]['us']:9.2f} {row[c]['ncu_us']:9.2f} {row[c]['ratio']:.3f}" for c in ("cold", "warm")
        )
        print(f"  {row['name']:<34} {cells}  {row['shape']}", flush=True)
        yield row


def by_caches(launches: Sequence[str], durations: Iterator[float]) -> dict[str, list[float]]:
    """The next durations, of these launches in order: those with cold and those with warm caches."""
    found: dict[str, list[float]] = {"cold": [], "warm": [], "": []}
    for caches in launches:
        found[caches].append(next(durations))
    return found


def run_child(command: list[str]) -> list[dict[str, Any]]:
    environment = {**harness_environment(), "HOME": os.environ.get("HOME", "/tmp")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{command[0]} failed: {done.stdout[-500:]} {done.stderr[-1500:]}")
    return [json.loads(line) for line in lines]


def durations_of(log: Path) -> Iterator[float]:
    """Microseconds of each launch, in order, from what ncu wrote."""
    rows = csv.reader(line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith('"'))
    header = next(rows)
    value, unit = header.index("Metric Value"), header.index("Metric Unit")
    scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
    for row in rows:
        yield float(row[value].replace(",", "")) * scale[row[unit]]


def candidates() -> Rows:
    """Whole verifications, each of a text that was never compiled; the first one starts the process."""
    for name, original, candidate in candidate_texts():
        marks: list[tuple[float, str]] = []
        started = time.monotonic()

        def progress(
            text: str, share: float | None, marks: list[tuple[float, str]] = marks, started: float = started
        ) -> None:
            marks.append((time.monotonic() - started, text.partition(" at ")[0]))

        report = verify(original, candidate, progress=progress, again=True)
        ended = time.monotonic() - started
        parts: dict[str, float] = {}
        for (begin, text), (end, _) in zip(marks, [*marks[1:], (ended, "")], strict=True):
            parts[text] = round(parts.get(text, 0.0) + end - begin, 3)
        shapes = {json.dumps(dict(c.shape)) for c in report.cases}
        row = {
            "name": name,
            "status": str(report.status),
            "seconds": round(ended, 2),
            "shapes_compared": len(shapes),
            "comparisons": len(report.cases),
            "shapes_timed": len(report.speed),
            "parts": parts,
        }
        print(f"  {name:<34} {row['status']:<14} {ended:5.2f} s  {len(shapes)} shapes, {parts}", flush=True)
        yield row


def summary(result: dict[str, Any]) -> dict[str, Any]:
    long = [row[c] for row in result["agreement"] for c in ("cold", "warm") if row[c]["ncu_us"] > LONG_US]
    called = sum(n for row in result["same"] for status, n in row["statuses"].items() if status in ("faster", "slower"))
    seen = sum(row["statuses"].get(row["expected"], 0) for row in result["different"])
    errors = sorted(abs(cell["ratio"] - 1) for cell in long)
    by_ncu = {row["name"]: row["cold"]["ncu_us"] for row in reversed(result["agreement"])}  # at the first shape of each
    return {
        "times_over_20_us": len(long),
        "within_2_percent_of_ncu": sum(error <= 0.02 for error in errors),
        "median_error": round(median(errors), 4),
        "largest_error": round(errors[-1], 4),
        "same_tries": sum(row["tries"] for row in result["same"]),
        "same_called_a_winner": called,
        "different_tries": sum(row["tries"] for row in result["different"]),
        "different_seen": seen,
        "different_by_ncu": [
            round(by_ncu["arithmetic, 2064 steps"] / by_ncu["arithmetic, 2000 steps"], 4),
            round(by_ncu["memory, 3 % more"] / by_ncu["memory"], 4),
        ],
        "seconds_per_candidate_warm": max(row["seconds"] for row in result["candidate"][1:]),
    }


def as_text(result: dict[str, Any]) -> str:
    """JSON with a line for each key and each row."""

    def value(content: Any) -> str:
        if isinstance(content, list):
            return "[\n" + ",\n".join(json.dumps(row) for row in content) + "\n]"
        return json.dumps(content)

    return "{\n" + ",\n".join(f"{json.dumps(key)}: {value(content)}" for key, content in result.items()) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where gpu_timing.json is written")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="measure these alone")
    arguments = parser.parse_args()
    gpu, toolchain = find_gpu(never_cancelled), find_toolchain()
    for part in (gpu, toolchain):
        if isinstance(part, Missing):
            print(f"gpu_timing: {part}", file=sys.stderr)
            return 2
    assert not isinstance(gpu, Missing) and not isinstance(toolchain, Missing)
    samples, kept = sample_sources(), arguments.out / "gpu_timing.json"
    result: dict[str, Any] = {
        "command": "PYTHONPATH=server:benchmarks python3 benchmarks/gpu_timing.py --out DIR",
        "hardware": dict(gpu.details),
        "versions": {"nvcc": toolchain.version, "python": platform.python_version(), "system": platform.system()},
    }
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if known.get("hardware", {}).get("name") == gpu.name:
        result |= {part: known[part] for part in (*PARTS, "rates") if part in known}
    arguments.out.mkdir(parents=True, exist_ok=True)

    def measured(part: str, title: str, rows: Rows) -> None:
        """One part, each row kept at once for a visit that is cut short, and a summary once all parts are there."""
        if part not in arguments.parts:
            return
        print(f"{title}:", flush=True)
        for row in rows:
            result.setdefault(part, []).append(row)
            kept.write_text(as_text(result), encoding="utf-8")
        result["rates"] = dict(known_rates(gpu))
        whole = {"summary": summary(result)} if all(each in result for each in PARTS) else {}
        kept.write_text(as_text(whole | result), encoding="utf-8")

    def lacking(part: str, named: Sequence[Named]) -> list[Named]:
        """What has no row yet."""
        rows = {row["name"] for row in result.get(part, [])}
        return [each for each in named if each[0] not in rows]

    each_same, each_different = (-(-TRIES // len(several)) for several in (samples, DIFFERENT))
    twice = [(name, text, text) for name, text in lacking("same", samples)]
    measured("candidate", "a candidate, in a warm process", candidates())
    measured("same", "the same text twice", verdicts(twice, gpu, each_same))
    measured("different", "3 % more or less work", different(lacking("different", DIFFERENT), gpu, each_different))
    close_idle()
    measured("agreement", "against Nsight Compute", agreement(lacking("agreement", [*samples, *MORE]), gpu))
    print(json.dumps(summary(result)) if all(part in result for part in PARTS) else "no summary: parts are lacking")
    return 0


def different(pairs: Sequence[tuple[str, Source, Source, str]], gpu: Gpu, tries: int) -> Rows:
    rows = verdicts([(name, a, b) for name, a, b, _ in pairs], gpu, tries)
    for row, pair in zip(rows, pairs, strict=True):
        yield {**row, "expected": pair[3]}


if __name__ == "__main__":
    sys.exit(main())
