"""How many candidates a minute are verified, beside a process for each candidate with one bare `nvcc -cubin`.

    PYTHONPATH=server:benchmarks python3 benchmarks/verify_throughput.py --out benchmarks/results

Candidates are samples with launch bounds: each is compiled anew, and all are correct. Ours: `verify` from several
threads, with caches of its own for the run. Theirs: for each candidate a fresh Python that compiles it with `nvcc
-cubin`, imports torch, makes a CUDA context and does the same comparison, timing and watching by compute-sanitizer
(the same request to the same code); what ours does beside that (parsing, analysis, planning) is done for it beforehand
and not counted. Both are measured one candidate at a time, and as many at a time as ours has threads; timing has the
GPU alone. The samples' references in torch are left out, and looked at apart: timing them takes a torch.compile, of
which theirs pays one for each candidate. Without a GPU ours is the emulator, and there is no other side. Writes
verify_throughput.json.
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
from warpwright.progress import never_cancelled
from warpwright.syntax.source import Source, read_include, read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.names import instance_of
from warpwright.verify import emulation, harness
from warpwright.verify.harness import find_gpu, harness_environment, harness_python
from warpwright.verify.plan import Side, make_request
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "csrc_samples"
CHOSEN = ("elementwise/saxpy", "memory/transpose_tiled", "reductions/row_sum", "elementwise/complex_multiply")
BOUNDS = ("1024", "1024, 1", "1024, 2")
VARIANTS = 2  # of each launch bound
OTHER_SIDE = 4  # of the candidates, at least, are given a process each


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


def ours(chosen: Sequence[Task], threads: int) -> tuple[float, list[float], list[Report]]:
    """Seconds for all, seconds of each, and the reports; nothing is in a cache at the start but the originals."""

    def one(task: Task) -> tuple[float, Report]:
        started = time.monotonic()
        report = verify(task.original, task.candidate, again=True)
        return time.monotonic() - started, report

    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(one, chosen))
    return time.monotonic() - started, [s for s, _ in done], [r for _, r in done]


def request_of(task: Task, arch: str) -> dict[str, Any]:
    """What the harness is asked for a task; the candidate's cubin is left to be made."""
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
    return make_request(sides[0], sides[1], seed=secrets.randbits(31), judge="baseline", timed=True)


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
from warpwright.progress import never_cancelled
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


def in_new_cache(work: Callable[[], Any]) -> Any:
    """Run `work` with nothing kept from before."""
    with tempfile.TemporaryDirectory() as folder:
        before = {name: os.environ.get(name) for name in ("WARPWRIGHT_CACHE_DIR", "WARPWRIGHT_DATA_DIR")}
        os.environ.update(dict.fromkeys(before, folder))
        try:
            return work()
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def measured(chosen: Sequence[Task], threads: int) -> dict[str, Any]:
    """Ours: one warm candidate at a time, then several at a time; the first, which starts all, is set apart."""

    def several() -> tuple[float, list[float], list[Report]]:
        return ours(chosen, threads)

    def one() -> tuple[float, list[float], list[Report]]:
        return ours(chosen[: 2 * of_each], 1)

    of_each = len(BOUNDS) * VARIANTS

    _, alone, reports = in_new_cache(one)
    print(f"one at a time: {alone[0]:.1f} s, then {median(alone):.2f} s each", flush=True)
    seconds, _, more = in_new_cache(several)
    statuses = Counter(str(report.status) for report in [*reports, *more])
    odd = [f"{r.kernel}: {r.reason}" for r in (*reports, *more) if r.status == "not-run"]
    warm = [seconds for place, seconds in enumerate(alone) if place % of_each]
    return {
        "first_of_a_kernel_seconds": alone[::of_each],
        "warm_seconds": {"median": median(warm), "largest": max(warm)},
        "per_minute_one_at_a_time": 60 * len(alone) / sum(alone),
        "per_minute": 60 * len(more) / seconds,
        "threads": threads,
        "statuses": dict(statuses),
        "not_run": odd,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--threads", type=int, default=max(2, min(4, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--samples", type=int, default=len(CHOSEN), help="how many of the samples, each in 6 variants")
    arguments = parser.parse_args()
    toolchain, gpu = find_toolchain(), find_gpu(never_cancelled)
    if isinstance(toolchain, Missing):
        print(toolchain, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        chosen = tasks(Path(folder), CHOSEN[: arguments.samples])
        result: dict[str, Any] = {
            "command": f"PYTHONPATH=server:benchmarks python3 benchmarks/verify_throughput.py {' '.join(sys.argv[1:])}",
            "load": os.getloadavg()[0],
            "processor": processor(),
            "backend": "emulator" if isinstance(gpu, Missing) else dict(gpu.details),
            "versions": {"nvcc": toolchain.version, "python": platform.python_version()},
            "candidates": len(chosen),
            "ours": measured(chosen, arguments.threads),
        }
        print(json.dumps(result["ours"], indent=1), flush=True)
        keep(arguments.out, result)
        if not isinstance(gpu, Missing):
            some = chosen[:: max(1, len(chosen) // OTHER_SIDE)]
            result |= beside(result["ours"], some, arguments.threads, toolchain.nvcc, gpu.arch)
            print(json.dumps({k: result[k] for k in ("process_for_each", "times_as_many")}, indent=1), flush=True)
            keep(arguments.out, result)
            result["with_reference"] = with_reference(toolchain.nvcc, gpu.arch)
            print(json.dumps(result["with_reference"], indent=1))
            keep(arguments.out, result)
    emulation.close_idle()
    return 0


def beside(own: dict[str, Any], some: Sequence[Task], threads: int, nvcc: Path, arch: str) -> dict[str, Any]:
    """The other side on some of the candidates, and how many times as many ours does in a minute."""
    requests = [request_of(task, arch) for task in some]
    harness.close_idle()
    apart, together = theirs(some, requests, 1, nvcc, arch), theirs(some, requests, threads, nvcc, arch)
    rates = {"per_minute_one_at_a_time": 60 * len(some) / apart, "per_minute": 60 * len(some) / together}
    times = {
        "both_one_at_a_time": own["per_minute_one_at_a_time"] / rates["per_minute_one_at_a_time"],
        "both_several_at_a_time": own["per_minute"] / rates["per_minute"],
        "ours_several_theirs_one_at_a_time": own["per_minute"] / rates["per_minute_one_at_a_time"],
    }
    return {"process_for_each": {"candidates": len(some), **rates}, "times_as_many": times}


def with_reference(nvcc: Path, arch: str) -> dict[str, Any]:
    """Of one sample with its reference in torch, one candidate at a time: seconds of ours, and of the other side."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = tasks(Path(folder), CHOSEN[:1])
        for name in ("reference.py", "sample.toml"):
            shutil.copy(SAMPLES / CHOSEN[0] / name, Path(folder) / CHOSEN[0])
        _, alone, _ = in_new_cache(lambda: ours(chosen, 1))
        requests = [request_of(task, arch) for task in chosen[:2]]
        seconds = theirs(chosen[:2], requests, 1, nvcc, arch) / 2
    return {"first_seconds": alone[0], "warm_seconds": median(alone[1:]), "process_for_each_seconds": seconds}


def keep(folder: Path, result: dict[str, Any]) -> None:
    name = "verify_throughput_emulator.json" if result["backend"] == "emulator" else "verify_throughput.json"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
