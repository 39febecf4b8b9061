"""How many candidates a minute are verified, beside a process for each candidate with one bare `nvcc -cubin`.

    PYTHONPATH=server:benchmarks python3 benchmarks/verify_throughput.py --out benchmarks/results

Candidates are samples with launch bounds: each is compiled anew, and all are correct. Ours: `verify` of one after the
other, and `verify_several`, which is what a search calls, with caches of its own for each run; of the stream the second
run is what counts, whose processes are warm. Theirs: for each candidate a fresh Python that compiles it with `nvcc
-cubin`, imports torch, makes a CUDA context and does the same comparison, timing and watching by compute-sanitizer
(the same request to the same code, with the rates of the GPU given); what ours does beside that (parsing, analysis,
planning) is done for it beforehand and not counted. Theirs are run one at a time and several at a time. The samples'
references in torch are left out: timing them takes a torch.compile, of which theirs would pay one for each candidate.
Without a GPU ours is the emulator, and there is no other side. Writes
verify_throughput.json, and prints where the seconds of a warm candidate go.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from hardware import processor
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.source import Source, read_include, read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.names import instance_of
from warpwright.verify import emulation, harness
from warpwright.verify.harness import Gpu, find_gpu, harness_environment, harness_python
from warpwright.verify.plan import Side, make_request
from warpwright.verify.rates import keep_rates, known_rates
from warpwright.verify.report import Report
from warpwright.verify.several import Trial, at_once, verify_several
from warpwright.verify.verify import verify

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "csrc_samples"
CHOSEN = ("elementwise/saxpy", "memory/transpose_tiled", "reductions/row_sum", "elementwise/complex_multiply")
BOUNDS = ("1024", "1024, 1", "1024, 2")
VARIANTS = 2  # of each launch bound
OTHERS_AT_ONCE = (1, 4, 8)


@dataclass(frozen=True)
class Task:
    name: str
    original: Source
    candidate: Source


def tasks(folder: Path, samples: Sequence[str] = CHOSEN) -> list[Task]:
    """Each sample, as a copy in `folder`, with each launch bound; those of one sample together, as in a search."""
    made = []
    for sample in samples:
        (folder / sample).mkdir(parents=True, exist_ok=True)
        original = read_source(shutil.copy(SAMPLES / sample / "kernel.cu", folder / sample))
        for bounds, variant in product(BOUNDS, range(VARIANTS)):
            text = original.text().replace("__global__ void ", f"__global__ void __launch_bounds__({bounds}) ")
            changed = f"{text}// variant {variant}\n"
            made.append(Task(f"{sample} ({bounds}) {variant}", original, Source(original.path, changed.encode())))
    return made


def one_by_one(chosen: Sequence[Task]) -> tuple[list[float], list[dict[str, float]], list[Report]]:
    """Seconds of each, the same by what was done, and the reports; nothing is in a cache at the start."""
    seconds, stages, reports = [], [], []
    for task in chosen:
        marks: list[tuple[float, str]] = []

        def progress(text: str, share: float | None, marks: list[tuple[float, str]] = marks) -> None:
            marks.append((time.monotonic(), text.partition(" at ")[0]))

        started = time.monotonic()
        reports.append(verify(task.original, task.candidate, progress=progress, again=True))
        ended = time.monotonic()
        seconds.append(ended - started)
        parts: dict[str, float] = {}
        for (begin, text), (end, _) in zip([(started, "Parsing"), *marks], [*marks, (ended, "")], strict=True):
            parts[text] = parts.get(text, 0.0) + end - begin
        stages.append(parts)
    return seconds, stages, reports


def stream(chosen: Sequence[Task]) -> tuple[float, list[Report]]:
    """Seconds for all, and the reports, of as many at once as a search verifies at once."""
    trials = [Trial(task.name, task.original, task.candidate) for task in chosen]
    started = time.monotonic()
    reports = verify_several(
        trials, kernel=None, goal="speed", progress=silent, is_cancelled=never_cancelled, arch=None, flags=(),
        again=True,
    )  # fmt: skip
    return time.monotonic() - started, [report for report in reports if report is not None]


def request_of(task: Task, gpu: Gpu) -> dict[str, Any]:
    """What the harness is asked for a task; the candidate's cubin is left to be made."""
    arch = gpu.arch
    sides = []
    for source in (task.original, task.candidate):
        program = analyze(source, partial(read_include, folders=()), Assumptions(arch=arch))
        kernel = program.defined_kernels[0]
        problem = find_problem(program, kernel)
        compiled = compile_cubin(source, arch=arch)
        assert isinstance(problem, Problem), problem
        resources = instance_of(compiled.kernels, kernel.name, problem.instance)
        assert resources is not None and compiled.cubin is not None, compiled.reason
        sides.append(Side(compiled.cubin, resources, problem))
    request = make_request(sides[0], sides[1], seed=secrets.randbits(31), judge="baseline", timed=True)
    return {**request, "rates": dict(known_rates(gpu))}


PROCESS = """
import hashlib, json, pathlib, subprocess, sys
folder, nvcc, arch = sys.argv[1:4]
request = json.load(open(folder + "/request.json"))
made = folder + "/candidate.cubin"
subprocess.run([nvcc, "-cubin", "-arch=" + arch, "-o", made, folder + "/candidate.cu"], check=True)
request["candidate"]["cubin"] = made
request["candidate"]["sha256"] = hashlib.sha256(pathlib.Path(made).read_bytes()).hexdigest()
from warpwright_harness import worker
events = []
from warpwright_harness.device import probe
probe()
worker._answer(request, events.append)
from warpwright.progress import never_cancelled, silent
from warpwright.verify.report import CaseResult, Status
from warpwright.verify.run import Observed
from warpwright.verify.sanitizer import look_for_hidden_faults
right = [e for e in events if e["event"] == "case" and e["ok"]]
cases = [CaseResult(e["shape"], e["distribution"], True, e["max_abs"], e["max_rel"]) for e in right]
look_for_hidden_faults(Observed(Status.CORRECT, cases=cases), request, never_cancelled)
print(json.dumps(events[-1]))
"""


def theirs(chosen: Sequence[Task], requests: Sequence[dict[str, Any]], threads: int, nvcc: Path, arch: str) -> float:
    """Seconds for all with a process for each."""

    def one(task: Task, request: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "request.json").write_text(json.dumps(request), encoding="utf-8")
            (Path(folder) / "candidate.cu").write_bytes(task.candidate.data)
            done = subprocess.run(
                [harness_python(), "-c", PROCESS, folder, str(nvcc), arch],
                env=harness_environment(), capture_output=True, text=True, check=False, timeout=300,
            )  # fmt: skip
            if '"done"' not in done.stdout:
                raise SystemExit(f"{task.name}: {done.stdout[-300:]} {done.stderr[-500:]}")

    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, chosen, requests))
    return time.monotonic() - started


def in_new_cache(work: Callable[[], Any], gpu: Gpu | Missing) -> Any:
    """Run `work` with nothing kept from before but what the GPU can do, which is measured once on a machine."""
    rates = {} if isinstance(gpu, Missing) else known_rates(gpu)
    with tempfile.TemporaryDirectory() as folder:
        before = {name: os.environ.get(name) for name in ("WARPWRIGHT_CACHE_DIR", "WARPWRIGHT_DATA_DIR")}
        os.environ.update(dict.fromkeys(before, folder))
        try:
            if rates and not isinstance(gpu, Missing):
                keep_rates(gpu, rates)
            return work()
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def measured(chosen: Sequence[Task], gpu: Gpu | Missing) -> dict[str, Any]:
    """Ours: one warm candidate at a time, then several; the first of a kernel, which starts all, is set apart."""
    of_each = len(BOUNDS) * VARIANTS
    alone, stages, reports = in_new_cache(lambda: one_by_one(chosen[: 2 * of_each]), gpu)
    print(f"one at a time: {alone[0]:.1f} s, then {median(alone):.2f} s each", flush=True)
    cold, first = in_new_cache(lambda: stream(chosen), gpu)
    seconds, second = in_new_cache(lambda: stream(chosen), gpu)
    print(f"{at_once()} at once: {cold / len(chosen):.2f} s each, then {seconds / len(chosen):.2f} s", flush=True)
    done = [*reports, *first, *second]
    warm = [place for place in range(len(alone)) if place % of_each]
    names = dict.fromkeys(name for place in warm for name in stages[place])
    return {
        "first_of_a_kernel_seconds": alone[::of_each],
        "warm_seconds": {"median": median(alone[p] for p in warm), "largest": max(alone[p] for p in warm)},
        "stages": {name: median(stages[place].get(name, 0.0) for place in warm) for name in names},
        "per_minute_one_at_a_time": 60 * len(warm) / sum(alone[place] for place in warm),
        "at_once": at_once(),
        "per_minute_with_its_start": 60 * len(chosen) / cold,
        "per_minute": 60 * len(chosen) / seconds,
        "statuses": dict(Counter(str(report.status) for report in done)),
        "not_run": [f"{r.kernel}: {r.reason}" for r in done if r.status == "not-run"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--samples", type=int, default=len(CHOSEN), help="how many of the samples, each in 6 variants")
    arguments = parser.parse_args()
    toolchain, gpu = find_toolchain(), find_gpu(never_cancelled)
    if isinstance(toolchain, Missing):
        print(toolchain, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        chosen = tasks(Path(folder), CHOSEN[: arguments.samples])
        verify(chosen[0].original, chosen[0].candidate)  # what the GPU can do is known then, to both sides
        result: dict[str, Any] = {
            "command": "PYTHONPATH=server:benchmarks python3 benchmarks/verify_throughput.py "
            f"--samples {arguments.samples} --out DIR",
            "load": os.getloadavg()[0],
            "processor": processor(),
            "backend": "emulator" if isinstance(gpu, Missing) else dict(gpu.details),
            "versions": {"nvcc": toolchain.version, "python": platform.python_version()},
            "candidates": len(chosen),
            "ours": measured(chosen, gpu),
        }
        keep(arguments.out, result)
        if not isinstance(gpu, Missing):
            result |= beside(result["ours"], chosen, toolchain.nvcc, gpu)
            keep(arguments.out, result)
        print(as_table(result), flush=True)
    emulation.close_idle()
    return 0


def beside(own: dict[str, Any], chosen: Sequence[Task], nvcc: Path, gpu: Gpu) -> dict[str, Any]:
    """The other side, so many at a time, and how many times as many ours does in a minute: one at a time, and ours
    several at once beside the best of the other side."""
    requests = [request_of(task, gpu) for task in chosen]
    harness.close_idle()
    of_each = len(BOUNDS) * VARIANTS
    per_minute = {}
    for at_a_time in OTHERS_AT_ONCE:
        places = range(1, len(chosen), of_each) if at_a_time == 1 else range(2 * at_a_time)
        some = [place % len(chosen) for place in places]
        seconds = theirs([chosen[p] for p in some], [requests[p] for p in some], at_a_time, nvcc, gpu.arch)
        per_minute[str(at_a_time)] = 60 * len(some) / seconds
        print(f"a process for each, {at_a_time} at once: {seconds / len(some):.2f} s each", flush=True)
    times = {
        "one_at_a_time": own["per_minute_one_at_a_time"] / per_minute["1"],
        "several_at_once": own["per_minute"] / max(per_minute.values()),
        "several_at_once_beside_one_at_a_time": own["per_minute"] / per_minute["1"],
    }
    return {"process_for_each_per_minute": per_minute, "times_as_many": times}


def as_table(result: dict[str, Any]) -> str:
    """The stages of a warm candidate in seconds, then candidates a minute and their ratio."""
    own, other, times = result["ours"], result.get("process_for_each_per_minute"), result.get("times_as_many")
    lines = [f"{name:<50}{seconds:8.2f} s" for name, seconds in own["stages"].items()]
    lines += [f"{'a warm candidate':<50}{own['warm_seconds']['median']:8.2f} s", ""]
    rows = [("ours, one after the other", own["per_minute_one_at_a_time"])]
    rows.append((f"ours, {own['at_once']} at once", own["per_minute"]))
    rows += [(f"a process for each, {at_a_time} at once", rate) for at_a_time, rate in (other or {}).items()]
    lines += [f"{name:<50}{rate:8.1f} a minute" for name, rate in rows]
    for name, ratio in (times or {}).items():
        lines.append(f"{'times as many: ' + name.replace('_', ' '):<50}{ratio:8.2f}")
    return "\n".join(lines)


def keep(folder: Path, result: dict[str, Any]) -> None:
    name = "verify_throughput_emulator.json" if result["backend"] == "emulator" else "verify_throughput.json"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
