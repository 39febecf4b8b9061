"""Whether written formulas compute what they say: those of the catalogue, or any number that the sampler makes.

    python benchmarks/formula_batch.py [--count 20000] [--seed 1] [--plain] [--workers 2] [--shapes 3] [--audit 100]
        [--ray] [--gpu] [--write]

Without --count the formulas of the catalogue, in all their types. Each is written, compiled with hundreds of others and
compared in the emulator with its evaluation by NumPy, in processes of this machine or, with --ray, of a Ray cluster.
--audit then has some of the correct ones checked as `warpwright formula` does: alone, by the optimising compiler, at
every shape. With --gpu they run on the GPU instead, whole files by the optimising compiler, beside their evaluation by
torch, at --shapes sizes, small and large. --write records the figures in benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from formula_catalogue import catalogue
from warpwright.emulator.formula_batch import Outcome, check_many
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import samples
from warpwright.missing import Missing
from warpwright.progress import never_cancelled, silent
from warpwright.verify.formula_gpu import Checked as GpuChecked
from warpwright.verify.formula_gpu import Item as GpuItem
from warpwright.verify.formula_gpu import cases_for, checked_on
from warpwright.verify.formulas import Asked, written_and_checked
from warpwright.verify.harness import find_gpu
from warpwright.verify.report import Report, Status
from warpwright.writer.code import Code
from warpwright.writer.coverage import paths_at
from warpwright.writer.scatter import ScatterError
from warpwright.writer.write import file_text, plain, written

RESULTS = Path(__file__).resolve().parent / "results"
TOGETHER, TOGETHER_ON_GPU = 200, 12
"""Formulas of one compilation."""
Item = tuple[str, str, str]
"""Kind, name and text of a formula."""
Checked = tuple[list[tuple[str, str, Outcome]], list[float], float]


def main() -> int:
    arguments = _arguments()
    items = list(_sampled(arguments.count, arguments.seed) if arguments.count else _listed())
    if arguments.gpu:
        Random(arguments.seed).shuffle(items)  # what is heavy is spread over the jobs
    items = items[: arguments.limit or None]
    together = TOGETHER_ON_GPU if arguments.gpu else min(TOGETHER, -(-len(items) // arguments.workers))
    jobs = [(items[at : at + together], arguments) for at in range(0, len(items), together)]
    start = time.monotonic()
    found: list[tuple[str, str, Outcome]] = []
    times: list[float] = []
    busy = 0.0
    for part, seconds_of_each, busy_with_it in _mapped(arguments)(checked, jobs):
        found += part
        times += seconds_of_each
        busy += busy_with_it
        seconds = time.monotonic() - start
        print(f"\r{len(found):,} of {len(items):,} in {seconds:.0f} s", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - start
    print(file=sys.stderr)
    _show(found, seconds, busy)
    right = [(kind, each.name, text) for kind, text, each in found if each.status == "correct"]
    sample = Random(arguments.seed).sample(right, min(arguments.audit, len(right)))
    audits = [each for part in _mapped(arguments)(audited, [[each] for each in sample]) for each in part]
    if audits:
        print(f"Audit: {Counter(report.status.value for _, report in audits)}")
        for text, report in audits:
            if report.status is not Status.CORRECT:
                print(f"\n{text}\n  {report.reason or report.not_run_because}")
    to_write = {"median": median(times), "99 %": quantiles(times, n=100)[98], "largest": max(times)}
    print("From text to CUDA: " + ", ".join(f"{name} {1000 * each:.1f} ms" for name, each in to_write.items()))
    if arguments.write:
        _write(arguments, found, seconds, busy, to_write, audits)
    return 0 if all(each.status in ("correct", "refused") for _, _, each in found) else 1


def checked(job: tuple[list[Item], argparse.Namespace]) -> Checked:
    """What became of some formulas: kind, text, outcome; the processor seconds from text to CUDA of each, and of all of
    it, the compiler's too."""
    items, arguments = job
    begun = _busy()
    made = []
    times: list[float] = []
    found: list[tuple[str, str, Outcome]] = []
    for number, (kind, name, text) in enumerate(items):
        start = time.process_time()
        try:
            formula = formula_of(text)
            code = (plain if arguments.plain else written)(formula, f"f{number}_{re.sub(r'[^A-Za-z0-9]', '_', name)}")
            file_text(code)
        except ScatterError as error:
            found.append((kind, text, Outcome(name, "refused", str(error))))
            continue
        times.append(time.process_time() - start)
        made.append((kind, text, code.name, formula, code))
    codes = [(name, formula, code) for _, _, name, formula, code in made]
    outcomes = (check_on_gpu if arguments.gpu else check_many)(codes, arguments.shapes)
    found += [(kind, text, each) for (kind, text, *_), each in zip(made, outcomes, strict=True)]
    return found, times, _busy() - begun


def _busy() -> float:
    """Processor seconds of this process and of those that it waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usages)


def check_on_gpu(codes: list[tuple[str, Formula, Code]], shapes: int) -> list[Outcome]:
    """As `check_many`, on the GPU."""
    gpu = find_gpu(never_cancelled)
    if isinstance(gpu, Missing):
        raise SystemExit(gpu.reason)
    items = [GpuItem(formula, code, cases_for(formula, code, {}, shapes)) for _, formula, code in codes]
    runs: list[list[GpuChecked]] = [[] for _ in codes]
    missing = ""
    for each in checked_on(gpu, items, never_cancelled):
        if isinstance(each, Missing):
            missing = each.reason
        else:
            runs[each.place].append(each)
    return [_outcome(item, found, missing) for item, found in zip(items, runs, strict=True)]


def _outcome(item: GpuItem, runs: list[GpuChecked], missing: str) -> Outcome:
    name, count = item.code.name, len(runs)
    wrong = next((each for each in runs if each.wrong), None)
    if wrong is not None:
        return Outcome(name, "wrong", f"At {dict(wrong.case.sizes)} ({wrong.case.style}): {wrong.wrong}", count)
    if not runs:
        return Outcome(name, "not-run", missing or "No case is legal.")
    seen = {key for each in item.cases for key in paths_at(item.code, item.formula, each.sizes)}
    paths = sum(len(step.paths) for step in item.code.steps)
    return Outcome(name, "correct", "", count, len(seen), paths, sum(each.unjudged for each in runs))


def audited(items: list[Item]) -> list[tuple[str, Report]]:
    """The reports on some formulas alone."""
    found = []
    for _, _, text in items:
        made = written_and_checked(formula_of(text), Asked("audited"), silent, never_cancelled)
        assert made.report is not None
        found.append((text, made.report))
    return found


def _mapped(arguments: argparse.Namespace) -> Callable[..., Iterable[Any]]:
    if arguments.ray:
        from ray.util.multiprocessing import Pool

        return Pool(arguments.workers).imap_unordered
    return ProcessPoolExecutor(arguments.workers).map


def _listed() -> Iterator[Item]:
    for entry in catalogue():
        for kind, text in entry.texts().items():
            yield entry.kind, f"{entry.name}_{kind}", text


def _sampled(count: int, seed: str) -> Iterator[Item]:
    for number, each in enumerate(islice(samples(seed), count)):
        yield each.family, f"{each.family}_{number}", each.text


def _show(found: list[tuple[str, str, Outcome]], seconds: float, busy: float) -> None:
    kinds = Counter((kind, each.status) for kind, _, each in found)
    statuses = sorted({status for _, status in kinds})
    print(f"{'kind':32}" + "".join(f"{status:>18}" for status in statuses))
    for kind in sorted({kind for kind, _ in kinds}):
        print(f"{kind:32}" + "".join(f"{kinds[kind, status]:18,}" for status in statuses))
    for kind, text, each in [each for each in found if each[2].status not in ("correct", "refused")][:20]:
        print(f"\n{kind}, {each.name}: {each.status}\n{text}\n  {each.reason}")
    runs = sum(each.runs for _, _, each in found)
    print(f"\n{len(found):,} formulas, {runs:,} runs, {seconds:.0f} s, of processors {busy:.0f} s")
    taken, paths = (sum(getattr(each, key) for _, _, each in found) for key in ("taken", "paths"))
    print(f"{taken:,} of {paths:,} paths taken")


def _write(
    arguments: argparse.Namespace,
    found: list[tuple[str, str, Outcome]],
    seconds: float,
    busy: float,
    to_write: Mapping[str, float],
    audits: list[tuple[str, Report]],
) -> None:
    where = "gpu_" if arguments.gpu else ""
    kind = "sampled" if arguments.count else "catalogue"
    name = f"formula_batch_{where}{'plain_' if arguments.plain else ''}{kind}.json"
    document = {
        "command": f"python benchmarks/formula_batch.py {' '.join(sys.argv[1:])}",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "formulas": len(found),
        "runs": sum(each.runs for _, _, each in found),
        "seconds": round(seconds),
        "processor_seconds": round(busy),
        "paths": sum(each.paths for _, _, each in found),
        "paths_taken": sum(each.taken for _, _, each in found),
        "elements_unjudged": sum(each.unjudged for _, _, each in found),
        "milliseconds_from_text_to_cuda": {name: round(1000 * each, 1) for name, each in to_write.items()},
        "workers": arguments.workers,
        "statuses": dict(Counter(each.status for _, _, each in found)),
        "audited": dict(Counter(report.status.value for _, report in audits)),
        "not_correct": [
            {"kind": kind, "text": text, "status": each.status, "reason": each.reason}
            for kind, text, each in found
            if each.status != "correct"
        ][:100],
    }  # fmt: skip
    (RESULTS / name).write_text(json.dumps(document, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--shapes", type=int, default=3)
    parser.add_argument("--audit", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--limit", type=int, default=0, help="only so many formulas")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
